// Wall clock of the kernels that read the lists of a pattern against a dense kernel on the dense
// problem: verified first, then timed in shuffled rounds; ratios are paired by round. A kernel that
// does only the work of its pattern is 1/density times as fast: `share` is how much of that it
// reaches.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "certify/bench/timing/statistics.hpp"
#include "certify/bench/timing/timing.hpp"
#include "core/error.hpp"
#include "core/registry.hpp"
#include "cpu/register.hpp"
#include "sparse/register.hpp"

namespace {

using attest::Direction;
using attest::InvalidProblem;
using attest::Problem;
using attest::certify::Candidate;
using attest::certify::Measurement;
using attest::certify::Quartiles;

constexpr int kUsage = 2, kInternal = 5;
constexpr double kPercent = 100;

struct Options {
  std::string dense = "cpu/flash2";
  std::vector<std::string> kernels{"sparse/block_flash2"};
  std::int64_t seqlen = 4096, head_dim = 64, heads = 1, block = 64;
  std::vector<double> percents{50, 25, 12.5, 5};
  std::int32_t threads = 1;
  int rounds = 9;
  std::uint64_t seed = 1;
  std::string json;
};

nlohmann::json json_of(const Quartiles& q) {
  return {{"low", q.low}, {"median", q.median}, {"high", q.high}};
}

Problem problem_of(const Options& options, std::int64_t heads, std::int64_t seqlen,
                   const std::string& mask) {
  return Problem::parse(fmt::format("hq={},sq={},d={}{}", heads, seqlen, options.head_dim, mask));
}

std::string mask_of(const Options& options, double percent) {
  return fmt::format(",mask=block_{}_{:g}_{}", options.block, percent, options.seed);
}

// Prints the rows of one direction and density, the dense kernel first.
void report(const Measurement& m, const Problem& problem, Direction direction, double density,
            nlohmann::json& rows) {
  const char* const word = direction == Direction::forward ? "forward" : "backward";
  for (std::size_t k = 1; k < m.timings.size(); ++k) {
    const Quartiles seconds = attest::certify::quartiles(m.timings[k].seconds);
    const Quartiles faster =
        attest::certify::paired_ratios(m.timings.front().seconds, m.timings[k].seconds);
    fmt::print(
        "{:<9} {:>6.2f}%  {:<22} {:>9.2f} {:>9.2f}  {:>6.2f} [{:.2f} {:.2f}] {:>6.2f} {:>5.0f}%\n",
        word, kPercent * density, m.timings[k].kernel,
        1e3 * attest::certify::quartiles(m.timings.front().seconds).median, 1e3 * seconds.median,
        faster.median, faster.low, faster.high, 1 / density, kPercent * faster.median * density);
    rows.push_back({{"kernel", m.timings[k].kernel},
                    {"dense_kernel", m.timings.front().kernel},
                    {"problem", problem.to_string()},
                    {"direction", word},
                    {"density", density},
                    {"seconds", json_of(seconds)},
                    {"times_as_fast", json_of(faster)},
                    {"share_of_1/density", faster.median * density}});
  }
  std::fflush(stdout);
}

int run(const Options& options) {
  attest::Registry registry;
  attest::register_cpu(registry);
  attest::register_sparse(registry);
  std::ofstream json;
  if (!options.json.empty()) {
    json.open(options.json);
    if (!json) throw InvalidProblem(fmt::format("--json: cannot write '{}'", options.json));
  }
  const Problem dense = problem_of(options, options.heads, options.seqlen, "");
  attest::certify::verify({&registry.find(options.dense)},
                          problem_of(options, 1, options.seqlen, ""), options.seed);
  fmt::print("{:<9} {:>7}  {:<22} {:>9} {:>9}  {:>6} {:<11} {:>8} {:>6}\n", "direction", "density",
             "kernel", "dense ms", "ms", "faster", "[quartiles]", "1/density", "share");
  nlohmann::json rows = nlohmann::json::array();
  for (const double percent : options.percents) {
    const std::string mask = mask_of(options, percent);
    const Problem problem = problem_of(options, options.heads, options.seqlen, mask);
    const double density =
        static_cast<double>(problem.visible_pairs()) / static_cast<double>(dense.visible_pairs());
    std::vector<Candidate> candidates{{&registry.find(options.dense), dense}};
    std::vector<const attest_kernel*> sparse;
    for (const std::string& name : options.kernels) {
      sparse.push_back(&registry.find(name));
      candidates.push_back({sparse.back(), problem});
    }
    attest::certify::verify(sparse, problem_of(options, 1, options.seqlen, mask), options.seed);
    for (const Direction direction : {Direction::forward, Direction::backward}) {
      report(attest::certify::measure(candidates, direction, options.threads, options.rounds,
                                      options.seed),
             problem, direction, density, rows);
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
  CLI::App app{"sparse_bench times kernels on a block pattern against a dense kernel without one."};
  Options options;
  app.add_option("--dense", options.dense, "dense kernel (attest list kernels)");
  app.add_option("--kernels", options.kernels, "kernels to time");
  app.add_option("--seqlen", options.seqlen, "rows of Q and of K")->check(CLI::PositiveNumber);
  app.add_option("--head-dim", options.head_dim, "head dimension")->check(CLI::PositiveNumber);
  app.add_option("--heads", options.heads, "heads")->check(CLI::PositiveNumber);
  app.add_option("--block", options.block, "rows and columns of a block")
      ->check(CLI::PositiveNumber);
  app.add_option("--percents", options.percents, "densities")->check(CLI::Range(0.01, 100.0));
  app.add_option("--threads", options.threads, "threads")->check(CLI::PositiveNumber);
  app.add_option("--rounds", options.rounds, "timed rounds")->check(CLI::PositiveNumber);
  app.add_option("--seed", options.seed, "seed of pattern, values and order");
  app.add_option("--json", options.json, "write the rows to FILE");
  try {
    app.parse(argc, argv);
    return run(options);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kUsage;
  } catch (const InvalidProblem& error) {
    fmt::print(stderr, "sparse_bench: {}\n", error.what());
    return kUsage;
  } catch (const std::exception& error) {
    fmt::print(stderr, "sparse_bench: internal error: {}\n", error.what());
    return kInternal;
  }
}
