#include "certify/worker/process/children.hpp"

#include <dirent.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <string>

namespace attest::certify::worker {
namespace {

std::atomic<bool> fork_seen{false};

// Every process that was waited for has touched pages.
long faults_of_waited() {
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  return usage.ru_minflt + usage.ru_majflt;
}

// Returns the children of all threads, those too that have ended and were not waited for. Empty
// where the system does not list children.
std::set<pid_t> living() {
  std::set<pid_t> processes;
  if (!has_children()) return processes;
  DIR* const threads = opendir("/proc/self/task");
  if (threads == nullptr) return processes;
  while (const dirent* thread = readdir(threads)) {
    const std::string path = "/proc/self/task/" + std::string(thread->d_name) + "/children";
    std::FILE* const list = std::fopen(path.c_str(), "re");
    if (list == nullptr) continue;
    for (int process = 0; std::fscanf(list, "%d", &process) == 1;) processes.insert(process);
    std::fclose(list);
  }
  closedir(threads);
  return processes;
}

}  // namespace

bool has_children() {
  siginfo_t info{};
  return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 || errno != ECHILD;
}

void Children::watch() {
  pthread_atfork([] { fork_seen = true; }, nullptr, nullptr);
}

void Children::forgive() {
  fork_seen = false;
  living_ = living();
  waited_ = faults_of_waited();
}

bool Children::started() {
  if (fork_seen) return true;
  if (living_.empty() && has_children()) return true;
  const std::set<pid_t> now = living();
  if (!std::includes(living_.begin(), living_.end(), now.begin(), now.end())) return true;
  const long waited = faults_of_waited();
  if (waited == waited_) return false;
  if (now.size() == living_.size()) return true;  // none of the forgiven is what was waited for
  living_ = now;
  waited_ = waited;
  return false;
}

}  // namespace attest::certify::worker
