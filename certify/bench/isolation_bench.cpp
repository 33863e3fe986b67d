// Extra cost of a call in a worker process over one in this process: quartiles of the difference
// over rounds in which both are called.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <exception>
#include <filesystem>

#include "certify/bench/timing/statistics.hpp"
#include "certify/bench/timing/timing.hpp"
#include "certify/worker/process/isolated_kernel.hpp"
#include "core/registry.hpp"
#include "cpu/register.hpp"

namespace {

using namespace attest;

struct Options {
  std::string kernel = "cpu/standard", program;
  int rounds = 500;
};

void measure(const Options& options) {
  Registry registry;
  register_cpu(registry);
  certify::worker::Limits limits;
  limits.program = options.program;
  const auto isolated = certify::worker::isolate_builtin(options.kernel, limits);
  fmt::print("{:<28} {:<9} {:>12} {:>30}\n", "problem", "direction", "in process",
             "more in a worker, microseconds");
  for (const char* text : {"sq=3,sk=5,d=4", "sq=17,sk=33,d=64", "b=2,hq=4,sq=64,sk=64,d=64",
                           "hq=8,sq=256,sk=256,d=64"}) {
    const Problem problem = Problem::parse(text);
    for (const auto direction : {Direction::forward, Direction::backward}) {
      const certify::Measurement found =
          certify::measure({&registry.find(options.kernel), &isolated->kernel()}, problem,
                           direction, 1, options.rounds, 1);
      constexpr double kMicro = 1e6;
      std::vector<double> alone, more;
      for (std::size_t k = 0; k < found.timings[0].seconds.size(); ++k) {
        alone.push_back(kMicro * found.timings[0].seconds[k]);
        more.push_back(kMicro * found.timings[1].seconds[k] - alone.back());
      }
      const certify::Quartiles cost = certify::quartiles(more);
      fmt::print("{:<28} {:<9} {:>12.1f} {:>10.1f} ({:.1f} to {:.1f})\n", text,
                 direction == Direction::forward ? "forward" : "backward",
                 certify::quartiles(alone).median, cost.median, cost.low, cost.high);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"what a call costs more in a worker process"};
  Options options;
  options.program =
      (std::filesystem::read_symlink("/proc/self/exe").parent_path() / "attest").string();
  app.add_option("--kernel", options.kernel, "built-in kernel");
  app.add_option("--program", options.program, "the attest program");
  app.add_option("--rounds", options.rounds, "rounds")->check(CLI::Range(1, 1000000));
  CLI11_PARSE(app, argc, argv);
  try {
    measure(options);
  } catch (const std::exception& error) {
    fmt::print(stderr, "isolation_bench: {}\n", error.what());
    return 1;
  }
  return 0;
}
