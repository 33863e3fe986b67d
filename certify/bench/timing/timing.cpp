#include "certify/bench/timing/timing.hpp"

#include <cstddef>
#include <deque>
#include <functional>
#include <numeric>

#include "certify/bench/arithmetic_peak.hpp"
#include "certify/bench/operands.hpp"
#include "certify/bench/timing/two_clocks.hpp"
#include "certify/bench/timing/watched_calls.hpp"
#include "core/error.hpp"
#include "core/rng.hpp"
#include "proptest/judge/truth/truth.hpp"
#include "proptest/values/values.hpp"

namespace attest::certify {
namespace {

void shuffle(std::vector<std::size_t>& order, Rng& rng) {
  for (std::size_t last = order.size(); last > 1; --last) {
    const auto other = rng.between(0, static_cast<std::int64_t>(last) - 1);
    std::swap(order[last - 1], order[static_cast<std::size_t>(other)]);
  }
}

}  // namespace

void verify(const std::vector<const attest_kernel*>& kernels, const Problem& problem,
            std::uint64_t seed) {
  const proptest::Case c{problem, proptest::Values::normal, seed, 1};
  const proptest::InputValues values = proptest::make_values(problem, c.values, seed);
  for (const attest_kernel* kernel : kernels) {
    const bool both = (kernel->description.directions & ATTEST_BACKWARD) != 0;
    const Direction direction = both ? Direction::backward : Direction::forward;
    const proptest::KernelRun run = proptest::run(*kernel, problem, values, direction, c);
    require_done(run.status, *kernel, problem);
    const auto refuse = [&](const std::string& what) {
      throw InvalidProblem(std::string(kernel->description.name) + ": not timed, because on " +
                           problem.to_string() + " it " + what + "; fix it or leave it out");
    };
    if (!run.misconduct.empty()) refuse("misbehaves: " + run.misconduct);
    const proptest::Truth truth(kernel->description, problem, values, direction, seed);
    const proptest::Judgement judgement = proptest::gravest(truth.judge(run));
    if (judgement.verdict != Verdict::passed) {
      refuse("is " + std::string(name(judgement.verdict)) + ": " + judgement.reason);
    }
  }
}

namespace {

// Steps of a round, and those before and after the call of candidate k; only `call` is timed.
struct Calls {
  std::function<void(std::size_t)> call;
  std::function<void(int)> round = [](int) {};
  std::function<void(std::size_t, int)> before = [](std::size_t, int) {};
  std::function<void(std::size_t, int)> after = [](std::size_t, int) {};
};

Measurement measure_each(const std::vector<const attest_kernel*>& kernels, int rounds,
                         std::uint64_t seed, const Calls& calls) {
  Measurement result;
  std::vector<std::size_t> order(kernels.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (const attest_kernel* kernel : kernels) {
    result.timings.push_back({kernel->description.name, {}, ""});
  }
  std::vector<TwoClocks> clocks(kernels.size());
  Rng rng(seed, 1);
  for (int round = -1; round < rounds; ++round) {  // round -1 warms up
    shuffle(order, rng);
    calls.round(round);
    if (round >= 0) result.peak_flops.push_back(arithmetic_peak_flops());
    for (const std::size_t candidate : order) {
      calls.before(candidate, round);
      clocks[candidate].start();
      calls.call(candidate);
      const double seconds = clocks[candidate].stop();
      calls.after(candidate, round);
      if (round >= 0) result.timings[candidate].seconds.push_back(seconds);
    }
  }
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    result.timings[k].objection = clocks[k].disagreement();
  }
  return result;
}

}  // namespace

Measurement measure_calls(const std::vector<const attest_kernel*>& kernels, const Problem& problem,
                          int rounds, std::uint64_t seed,
                          const std::function<attest_status(const attest_kernel&)>& call) {
  return measure_each(kernels, rounds, seed, {[&](std::size_t k) {
                        require_done(call(*kernels[k]), *kernels[k], problem);
                      }});
}

Measurement measure(const std::vector<const attest_kernel*>& kernels, const Problem& problem,
                    Direction direction, std::int32_t threads, int rounds, std::uint64_t seed) {
  if (kernels.empty()) throw InvalidProblem("kernels: none given; pass at least one to time");
  Operands operands(problem, threads);
  operands.fill(proptest::make_values(problem, proptest::Values::normal, seed));
  require_done(operands.call(*kernels.front(), Direction::forward), *kernels.front(), problem);
  return measure_calls(kernels, problem, rounds, seed, [&](const attest_kernel& kernel) {
    return operands.call(kernel, direction);
  });
}

Measurement measure(const std::vector<Candidate>& candidates, Direction direction,
                    std::int32_t threads, int rounds, std::uint64_t seed) {
  if (candidates.empty()) throw InvalidProblem("kernels: none given; pass at least one to time");
  std::vector<const attest_kernel*> kernels;
  std::deque<Operands> operands;  // they do not move
  const auto call = [&](std::size_t k, Direction one) {
    require_done(operands[k].call(*kernels[k], one), *kernels[k], candidates[k].problem);
  };
  for (const Candidate& candidate : candidates) {
    kernels.push_back(candidate.kernel);
    operands.emplace_back(candidate.problem, threads, candidate.kernel->description.features);
    operands.back().fill(proptest::make_values(candidate.problem, proptest::Values::normal, seed));
    call(kernels.size() - 1, Direction::forward);
  }
  return measure_each(kernels, rounds, seed, {[&](std::size_t k) { call(k, direction); }});
}

Measurement measure_watched(const std::vector<const attest_kernel*>& kernels,
                            const Problem& problem, Direction direction, std::int32_t threads,
                            int rounds, std::uint64_t seed, Heartbeat& beat) {
  if (kernels.empty()) throw InvalidProblem("kernels: none given; pass at least one to time");
  std::deque<WatchedCalls> watched;  // they do not move
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    watched.emplace_back(*kernels[k], problem, direction, threads, seed, KernelHeart{beat, k});
  }
  proptest::InputValues values;
  Calls calls;
  calls.call = [&](std::size_t k) { require_done(watched[k].call(), *kernels[k], problem); };
  calls.round = [&](int round) { values = WatchedCalls::values(problem, seed, round); };
  calls.before = [&](std::size_t k, int round) {
    watched[k].prepare(values, round);
    beat.begins(k, round);
  };
  calls.after = [&](std::size_t k, int round) {
    beat.ends();
    watched[k].look(values, round);
  };
  Measurement result = measure_each(kernels, rounds, seed, calls);
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    std::string& objection = result.timings[k].objection;
    if (objection.empty()) objection = watched[k].objection();
  }
  return result;
}

double useful_flops(const Problem& problem, Direction direction) {
  const double pairs =
      static_cast<double>(problem.visible_pairs()) * static_cast<double>(problem.num_heads_q);
  const auto d = static_cast<double>(problem.head_dim_qk),
             dv = static_cast<double>(problem.head_dim_v);
  return pairs * (direction == Direction::forward ? 2 * (d + dv) : 6 * d + 4 * dv);
}

}  // namespace attest::certify
