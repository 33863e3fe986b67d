#include "certify/cli/emulate.hpp"

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <vector>

#include "core/error.hpp"

namespace attest::certify::cli {

void become_emulation(const EmulateOptions& options) {
  const std::filesystem::path program =
      std::filesystem::read_symlink("/proc/self/exe").parent_path() / "attest-emulate";
  std::vector<std::string> words{program.string(), "--kernel",      options.kernel,
                                 "--problem",      options.problem, "--values",
                                 options.values,   "--seed",        std::to_string(options.seed)};
  if (options.races) words.emplace_back("--races");
  if (options.json) words.emplace_back("--json");
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  std::fflush(nullptr);
  execv(program.c_str(), arguments.data());
  throw InvalidProblem(
      "--emulate: cannot start " + program.string() +
      "; it is a target of its own: cmake --build --preset ci --target attest-emulate");
}

}  // namespace attest::certify::cli
