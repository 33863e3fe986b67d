// Small cases per second on one thread: values, kernel, reference, bounds, decoys and comparison,
// forward and backward. Or a smoke campaign of a kernel over one without the claims of version 2 of
// the interface, in turns.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <ctime>
#include <exception>
#include <iterator>
#include <stdexcept>
#include <vector>

#include "certify/bench/timing/statistics.hpp"
#include "certify/campaign/campaign.hpp"
#include "core/registry.hpp"
#include "core/rng.hpp"
#include "cpu/register.hpp"
#include "proptest/laws/law.hpp"

namespace {

using namespace attest;

// At most two heads, 33 keys and head dimension 16.
const char* const kProblems[] = {"sq=1,sk=17,d=8",
                                 "sq=16,sk=16,d=16,mask=causal_br",
                                 "hq=2,hkv=1,sq=17,sk=33,d=8,dv=16,mask=causal_br,dtype=bf16",
                                 "b=2,sq=7,sk=9,d=16,mask=lengths_9_4,strides=padded",
                                 "sq=31,sk=31,d=16,mask=window_7_0,dtype=f16",
                                 "hq=2,d=8,mask=cu_5x7_16x16,softcap=30"};

double cases_per_second(const attest_kernel& kernel, const char* name, int cases,
                        std::uint64_t round) {
  const proptest::Law& law = proptest::find_law(name);
  const auto begin = std::chrono::steady_clock::now();
  for (int k = 0; k < cases; ++k) {
    const Problem problem =
        Problem::parse(kProblems[static_cast<std::size_t>(k) % std::size(kProblems)]);
    const proptest::Case c{problem, proptest::Values::normal,
                           mix(round, static_cast<std::uint64_t>(k)), 1};
    const Verdict verdict = law.check(kernel, c).verdict;
    if (verdict == Verdict::violated || verdict == Verdict::crashed) {
      throw std::runtime_error("refused: " + problem.to_string());
    }
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  return cases / seconds.count();
}

// Processor seconds of a smoke campaign on one thread, which other programs do not lengthen.
struct Campaign {
  std::vector<double> seconds;
  certify::CampaignResult result;

  void run(const attest_kernel& kernel, std::uint64_t seed) {
    certify::CampaignOptions options;
    options.seed = seed;
    const std::clock_t begin = std::clock();
    result = certify::run_campaign(kernel, options, [](auto&&...) {});
    seconds.push_back(static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC);
  }
  void tell(const char* claims) const {
    fmt::print("{:<26} {:>5} pairs claimed, {:>6} checks, {:.1f} s, {}\n", claims,
               result.claimed.size(), result.checks, certify::quartiles(seconds).median,
               certify::outcome(result));
  }
};

void time_features(const attest_kernel& kernel, int rounds) {
  attest_kernel before = kernel;
  before.description.features &= ATTEST_SINKS - 1u;  // its bit is the first of version 2
  Campaign with, without;
  for (int round = 0; round < rounds; ++round) {
    const auto seed = static_cast<std::uint64_t>(round + 1);
    if (round % 2 == 0) with.run(kernel, seed);
    without.run(before, seed);
    if (round % 2 != 0) with.run(kernel, seed);
  }
  without.tell("claims of version 1");
  with.tell("claims of version 2");
  const certify::Quartiles ratio = certify::paired_ratios(with.seconds, without.seconds);
  fmt::print("time over that without: {:.2f} ({:.2f} to {:.2f})\n", ratio.median, ratio.low,
             ratio.high);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"small cases per second of one thread, reference and bounds included"};
  std::string kernel = "cpu/flash2";
  int cases = 600, rounds = 5;
  bool features = false;
  app.add_option("--kernel", kernel, "built-in kernel");
  app.add_option("--cases", cases, "cases in a round")->check(CLI::Range(1, 1000000));
  app.add_option("--rounds", rounds, "rounds")->check(CLI::Range(1, 1000));
  app.add_flag("--features", features,
               "a smoke campaign with the claims of version 2 over one without them");
  CLI11_PARSE(app, argc, argv);
  try {
    Registry registry;
    register_cpu(registry);
    if (features) {
      time_features(registry.find(kernel), rounds);
      return 0;
    }
    for (const char* law : {"reference_forward", "reference_backward"}) {
      std::vector<double> rates;
      rates.reserve(static_cast<std::size_t>(rounds));
      for (int round = 0; round < rounds; ++round) {
        rates.push_back(
            cases_per_second(registry.find(kernel), law, cases, static_cast<std::uint64_t>(round)));
      }
      const certify::Quartiles found = certify::quartiles(rates);
      fmt::print("{} {:<20} {:.0f} cases per second ({:.0f} to {:.0f})\n", kernel, law,
                 found.median, found.low, found.high);
    }
  } catch (const std::exception& error) {
    fmt::print(stderr, "campaign_bench: {}\n", error.what());
    return 1;
  }
  return 0;
}
