#include "certify/worker/process/spawn.hpp"

#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sstream>
#include <vector>

#include "certify/printable.hpp"
#include "core/error.hpp"

namespace attest::certify::worker {

void require(int error, const std::string& what) {
  if (error != 0) throw InvalidProblem("worker: cannot " + what + ": " + std::strerror(error));
}

sigset_t request_set() {
  sigset_t requests;
  sigemptyset(&requests);
  for (const int signal : kRequests) sigaddset(&requests, signal);
  return requests;
}

SpawnAttributes::SpawnAttributes() {
  require(posix_spawnattr_init(&attributes), "prepare a process");
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  require(posix_spawn_file_actions_init(&actions), "prepare a process");
}

void SpawnAttributes::hold_requests() {
  const sigset_t requests = request_set();
  posix_spawnattr_setsigmask(&attributes, &requests);
}

SpawnAttributes::~SpawnAttributes() {
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
}

bool send_descriptors(const Descriptor& socket, const Given& given) {
  alignas(cmsghdr) char ancillary[CMSG_SPACE(sizeof given)] = {};
  char byte = 'f';
  iovec text{&byte, 1};
  msghdr message{};
  message.msg_iov = &text;
  message.msg_iovlen = 1;
  message.msg_control = ancillary;
  message.msg_controllen = sizeof ancillary;
  cmsghdr* const head = CMSG_FIRSTHDR(&message);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(sizeof given);
  std::memcpy(CMSG_DATA(head), &given, sizeof given);
  return sendmsg(socket.get(), &message, MSG_NOSIGNAL) == 1;
}

int watch_process(pid_t process) {
  int descriptor = -1;
#if defined(SYS_pidfd_open)
  descriptor = static_cast<int>(syscall(SYS_pidfd_open, process, 0));
#endif
  require(descriptor < 0 ? errno : 0, "watch a process (pidfd_open)");
  return descriptor;
}

int kill_group(pid_t process) {
  ::kill(-process, SIGKILL);  // what it started too; a dead leader keeps the group's number
  ::kill(process, SIGKILL);   // should it have left its group
  int status = 0;
  while (waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

off_t size_of(const Descriptor& file) {
  struct stat status {};
  return fstat(file.get(), &status) == 0 ? status.st_size : 0;
}

std::string last_lines(const Descriptor& file, off_t from) {
  constexpr off_t kMostBytes = 1000;
  constexpr std::size_t kMostLines = 3;
  const off_t end = size_of(file), begin = std::max(from, end - kMostBytes);
  if (end <= begin) return "";
  std::string text(static_cast<std::size_t>(end - begin), ' ');
  if (pread(file.get(), text.data(), text.size(), begin) != static_cast<ssize_t>(text.size())) {
    return "";
  }
  std::istringstream lines(text);
  std::vector<std::string> last;
  for (std::string line; std::getline(lines, line);) {
    if (const std::size_t first = line.find_first_not_of(" \t\r"); first != std::string::npos) {
      last.push_back(printable(line.substr(first, line.find_last_not_of(" \t\r") + 1 - first)));
    }
    if (last.size() > kMostLines) last.erase(last.begin());
  }
  std::string words;
  for (const std::string& line : last) words += (words.empty() ? "" : " | ") + line;
  return words;
}

}  // namespace attest::certify::worker
