// Wall clock of the CPU kernels against unfused attention on Eigen: verified first, then timed in
// shuffled rounds; ratios are paired by round.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <Eigen/Core>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "certify/bench/eigen_attention.hpp"
#include "certify/bench/timing/statistics.hpp"
#include "certify/bench/timing/timing.hpp"
#include "core/error.hpp"
#include "core/registry.hpp"
#include "cpu/register.hpp"
#include "schedules/register.hpp"

namespace {

using attest::Direction;
using attest::InvalidProblem;
using attest::Problem;
using attest::certify::KernelTiming;
using attest::certify::Measurement;
using attest::certify::Quartiles;

constexpr int kUsage = 2, kInternal = 5;

struct Options {
  std::vector<std::string> kernels{"cpu/standard", "cpu/flash2"};
  std::int64_t seqlen = 2048, heads = 4;
  std::vector<std::int64_t> head_dims{64, 128};
  std::vector<std::int32_t> threads{1, 2};
  int rounds = 9;
  std::uint64_t seed = 1;
  std::string json;
};

nlohmann::json json_of(const Quartiles& q) {
  return {{"low", q.low}, {"median", q.median}, {"high", q.high}};
}

// Prints the rows of one configuration and returns them for the JSON file. Ratios are to the last
// candidate, the peer.
nlohmann::json report(const Measurement& m, const Problem& problem, Direction direction,
                      std::int32_t threads) {
  const char* const word = direction == Direction::forward ? "forward" : "backward";
  const double peak = attest::certify::quartiles(m.peak_flops).median * threads;
  nlohmann::json rows = nlohmann::json::array();
  for (const KernelTiming& timing : m.timings) {
    const Quartiles seconds = attest::certify::quartiles(timing.seconds);
    const Quartiles ratio =
        attest::certify::paired_ratios(timing.seconds, m.timings.back().seconds);
    const double rate = attest::certify::useful_flops(problem, direction) / seconds.median;
    fmt::print(
        "{:<9} {:>4} {:>7}  {:<30} {:>8.2f} [{:>8.2f} {:>8.2f}] {:>7.1f} {:>5.0f}%  {:>6.3f} "
        "[{:.3f} {:.3f}]\n",
        word, problem.head_dim_qk, threads, timing.kernel, 1e3 * seconds.median, 1e3 * seconds.low,
        1e3 * seconds.high, rate / 1e9, 100 * rate / peak, ratio.median, ratio.low, ratio.high);
    rows.push_back({{"kernel", timing.kernel},
                    {"problem", problem.to_string()},
                    {"direction", word},
                    {"threads", threads},
                    {"seconds", json_of(seconds)},
                    {"ratio_to_peer", json_of(ratio)},
                    {"useful_flops_per_second", rate},
                    {"peak_flops_per_second", peak}});
  }
  std::fflush(stdout);
  return rows;
}

// Returns the kernels that claim the direction.
std::vector<const attest_kernel*> claiming_kernels(const std::vector<const attest_kernel*>& kernels,
                                                   Direction direction) {
  const std::uint32_t bit = direction == Direction::forward ? ATTEST_FORWARD : ATTEST_BACKWARD;
  std::vector<const attest_kernel*> claiming;
  for (const attest_kernel* kernel : kernels) {
    if ((kernel->description.directions & bit) != 0) claiming.push_back(kernel);
  }
  return claiming;
}

int run(const Options& options) {
  Eigen::setNbThreads(1);  // the peer shares out heads, as the kernels do
  attest::Registry registry;
  attest::register_cpu(registry);
  attest::register_dense_schedule_kernels(registry);
  std::vector<const attest_kernel*> kernels;
  for (const std::string& name : options.kernels) kernels.push_back(&registry.find(name));
  kernels.push_back(&attest::certify::eigen_kernel());
  std::ofstream json;
  if (!options.json.empty()) {
    json.open(options.json);
    if (!json) throw InvalidProblem(fmt::format("--json: cannot write '{}'", options.json));
  }
  fmt::print("{:<9} {:>4} {:>7}  {:<30} {:>8} [{:>8} {:>8}] {:>7} {:>6}  ratio to {}\n",
             "direction", "d", "threads", "kernel", "ms", "quartile", "quartile", "GFLOP/s", "peak",
             kernels.back()->description.name);
  nlohmann::json rows = nlohmann::json::array();
  for (const std::int64_t d : options.head_dims) {
    const std::string sizes = fmt::format(",sq={},d={}", options.seqlen, d);
    const Problem problem = Problem::parse(fmt::format("hq={}", options.heads) + sizes);
    attest::certify::verify(kernels, Problem::parse("hq=1" + sizes), options.seed);
    for (const Direction direction : {Direction::forward, Direction::backward}) {
      const std::vector<const attest_kernel*> claiming = claiming_kernels(kernels, direction);
      if (claiming.size() == 1) continue;  // the peer alone
      for (const std::int32_t threads : options.threads) {
        const Measurement m = attest::certify::measure(claiming, problem, direction, threads,
                                                       options.rounds, options.seed);
        for (auto& row : report(m, problem, direction, threads)) rows.push_back(std::move(row));
      }
    }
  }
  if (json.is_open()) {
    json << rows.dump(2) << '\n';
    if (!json.flush()) throw InvalidProblem(fmt::format("--json: cannot write '{}'", options.json));
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"attention_bench times the CPU kernels against unfused attention on Eigen."};
  Options options;
  app.add_option("--kernels", options.kernels, "kernels to time (attest list kernels)");
  app.add_option("--seqlen", options.seqlen, "rows of Q and of K")->check(CLI::PositiveNumber);
  app.add_option("--heads", options.heads, "heads")->check(CLI::PositiveNumber);
  app.add_option("--head-dims", options.head_dims, "head dimensions")->check(CLI::PositiveNumber);
  app.add_option("--threads", options.threads, "numbers of threads")->check(CLI::PositiveNumber);
  app.add_option("--rounds", options.rounds, "timed rounds")->check(CLI::PositiveNumber);
  app.add_option("--seed", options.seed, "seed of values and order");
  app.add_option("--json", options.json, "write the rows to FILE");
  try {
    app.parse(argc, argv);
    return run(options);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kUsage;
  } catch (const InvalidProblem& error) {
    fmt::print(stderr, "attention_bench: {}\n", error.what());
    return kUsage;
  } catch (const std::exception& error) {
    fmt::print(stderr, "attention_bench: internal error: {}\n", error.what());
    return kInternal;
  }
}
