#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <vector>

#include "certify/cli/commands.hpp"
#include "core/error.hpp"

namespace attest::certify::cli {
namespace {

struct EmulateOptions {
  std::string kernel, problem, values = "normal";
  std::uint64_t seed = 1;
  bool races = false, json = false;
};

// Becomes attest-emulate, which lies beside this program and has the emulated kernels with hooks.
[[noreturn]] void become_emulation(const EmulateOptions& options) {
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
      "cannot start " + program.string() +
      "; it is a target of its own: cmake --build --preset ci --target attest-emulate");
}

}  // namespace

void add_emulate(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "emulate", "one case of a CUDA kernel in every order of lanes and blocks, without a GPU");
  auto options = std::make_shared<EmulateOptions>();
  command
      ->add_option("--kernel", options->kernel,
                   "name of an emulated kernel, gpu/... (attest list kernels)")
      ->required()
      ->check(not_empty());
  command->add_option("--problem", options->problem, "problem string, for example sq=17,d=64")
      ->required()
      ->check(not_empty());
  command->add_option("--values", options->values, "value family (attest list values)");
  command->add_option("--seed", options->seed, "seed of the values")->check(whole_number());
  command->add_flag("--races", options->races,
                    "look for races and uninitialised reads of shared memory, too");
  command->add_flag("--json", options->json, "as JSON");
  command->footer(
      "Looks at the run, not at the result, which attest check judges: deadlocks, divergence,\n"
      "accesses outside buffers, and with --races every access held against the others.\n"
      "Exit status 0 where nothing was found, 1 where something was.\n"
      "Examples:\n"
      "  attest emulate --kernel gpu/flash2 --problem sq=65,d=64 --races\n"
      "  attest emulate --kernel gpu/split_kv --problem sq=1,sk=300,d=32 --values negative");
  command->callback(
      [&action, options] { action = [options]() -> int { become_emulation(*options); }; });
}

}  // namespace attest::certify::cli
