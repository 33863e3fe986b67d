// attest-emulate: what `attest emulate` starts. Its kernels are compiled with hooks, which
// the command's own are not (docs/decisions/0008-cuda-on-the-host.md).
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

#include "certify/cli/guarded.hpp"
#include "certify/cli/terminal.hpp"
#include "certify/emulation/emulated_check.hpp"
#include "core/error.hpp"
#include "core/text/thousands.hpp"
#include "proptest/judge/truth/affordable.hpp"
#include "proptest/values/values.hpp"

namespace attest::certify {
namespace {

constexpr int kClean = 0, kFound = 1;

struct Options {
  std::string kernel, problem, values = "normal";
  std::uint64_t seed = 1;
  bool races = false, json = false;
};

nlohmann::json json_of(const Options& options, const EmulatedCheck& found) {
  nlohmann::json runs = nlohmann::json::array();
  for (const EmulatedRun& run : found.runs) {
    runs.push_back({{"direction", run.direction},
                    {"order", run.order},
                    {"launches", run.launches.launches},
                    {"blocks_given_up", run.launches.blocks_given_up},
                    {"shared_bytes", run.launches.shared_bytes},
                    {"diagnoses", run.launches.diagnoses},
                    {"misconduct", run.misconduct}});
  }
  return {{"kernel", options.kernel},   {"problem", options.problem},
          {"races", options.races},     {"runs", runs},
          {"findings", found.findings}, {"clean", found.clean()}};
}

void print(const Options& options, const EmulatedCheck& found) {
  fmt::print("kernel  {}, emulated\n{}  values={} seed={}\n\n", options.kernel,
             Problem::parse(options.problem).to_string(), options.values, options.seed);
  for (const EmulatedRun& run : found.runs) {
    const bool clean = run.launches.clean() && run.misconduct.empty();
    fmt::print("  {:<14} {:<32} {}  {} launches, {} bytes of shared memory\n", run.direction,
               run.order, clean ? "clean" : "FOUND", run.launches.launches,
               thousands(run.launches.shared_bytes));
    for (const std::string& diagnosis : run.launches.diagnoses) fmt::print("    {}\n", diagnosis);
    if (!run.misconduct.empty()) fmt::print("    {}\n", run.misconduct);
  }
  for (const std::string& finding : found.findings) fmt::print("  {}\n", finding);
  const char* const looked_for =
      options.races ? "" : "; races and uninitialised reads were not looked for: add --races";
  fmt::print("\n{} in {} orders{}\n", found.clean() ? "CLEAN" : "FOUND", emulation_orders().size(),
             looked_for);
}

int run(const Options& options) {
#ifndef ATTEST_HOOKED_KERNELS
  if (options.races) {
    throw InvalidProblem(
        "--races needs kernels that are compiled with hooks: build with g++ and no sanitizer");
  }
#endif
  Registry registry;
  register_emulated(registry);
  for (const std::string& name : registry.names()) {
    registry.add_absent(name + "@device", "runs on a device; attest emulate takes '" + name +
                                              "', the same kernel emulated");
  }
  const attest_kernel& kernel = registry.find(options.kernel);
  const proptest::Case c{Problem::parse(options.problem), proptest::parse_values(options.values),
                         options.seed, 1};
  proptest::require_affordable(
      kernel.description, c.problem,
      options.races ? proptest::Work::calls_with_races : proptest::Work::calls);
  const SharedMemoryChecks checks =
      options.races ? SharedMemoryChecks::on : SharedMemoryChecks::off;
  std::optional<cli::ElapsedLine> line;
  const EmulatedCheck found = check_emulated(kernel, c, checks, [&](const std::string& order) {
    line.emplace(options.kernel + " " + order);
  });
  line.reset();
  if (options.json) {
    fmt::print("{}\n", json_of(options, found).dump(2));
  } else {
    print(options, found);
  }
  return found.clean() ? kClean : kFound;
}

}  // namespace
}  // namespace attest::certify

int main(int argc, char** argv) {
  CLI::App app{"one case of an emulated CUDA kernel in every order of lanes and blocks",
               "attest-emulate"};
  attest::certify::Options options;
  app.add_option("--kernel", options.kernel, "name of an emulated kernel")->required();
  app.add_option("--problem", options.problem, "problem string, for example sq=17,d=64")
      ->required();
  app.add_option("--values", options.values, "value family");
  app.add_option("--seed", options.seed, "seed of the values");
  app.add_flag("--races", options.races,
               "hold accesses to shared and global memory against one another");
  app.add_flag("--json", options.json, "as JSON");
  return attest::certify::cli::guarded([&] {
    try {
      app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
      return app.exit(error) == 0 ? 0 : attest::certify::cli::kUsage;
    }
    return attest::certify::run(options);
  });
}
