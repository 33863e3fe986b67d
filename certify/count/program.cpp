#include "certify/count/program.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "certify/worker/process/arguments.hpp"
#include "core/error.hpp"

extern char** environ;

namespace attest::certify {
namespace {

std::vector<std::string> environment_with(std::vector<std::string> variables) {
  const auto name = [](const std::string& text) { return text.substr(0, text.find('=')); };
  std::vector<std::string> names;
  names.reserve(variables.size());
  for (const std::string& variable : variables) names.push_back(name(variable));
  for (char** inherited = environ; *inherited != nullptr; ++inherited) {
    const std::string text(*inherited);
    if (std::find(names.begin(), names.end(), name(text)) == names.end()) variables.push_back(text);
  }
  return variables;
}

}  // namespace

int run_program(Program program, const std::string& output_file) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  constexpr int kReadable = 0600;
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, output_file.c_str(),
                                   O_WRONLY | O_CREAT | O_APPEND, kReadable);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  std::vector<std::string> variables = environment_with(program.variables);
  pid_t pid = -1;
  const int error =
      posix_spawnp(&pid, program.words.front().c_str(), &actions, nullptr,
                   worker::pointers(program.words).data(), worker::pointers(variables).data());
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    throw InvalidProblem("cannot start " + program.words.front() + ": " + std::strerror(error) +
                         "; install it (apt-get install " + program.package + ")");
  }
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

}  // namespace attest::certify
