#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "certify/bench/timing/heartbeat.hpp"
#include "core/abi/attest_kernel.h"
#include "core/problem.hpp"
#include "proptest/judge/run.hpp"

namespace attest::certify {

/// Seconds of one kernel, one entry per round.
struct KernelTiming {
  std::string kernel;
  std::vector<double> seconds;
  std::string objection;  // "" or why its times are worth nothing
};

/// Results of one configuration: the candidates in the order they were passed, and the arithmetic
/// peak of one thread in every round.
struct Measurement {
  std::vector<KernelTiming> timings;
  std::vector<double> peak_flops;
};

/// Judges each kernel's results on the problem against the reference within its derived bounds.
/// Throws InvalidProblem naming the first kernel that does not pass: what is wrong is not timed.
/// [certify/bench/timing/timing_test "a wrong kernel is not timed"]
void verify(const std::vector<const attest_kernel*>& kernels, const Problem& problem,
            std::uint64_t seed);

/// Times every kernel once per round by a clock that another looks after (an objection where the
/// two disagree), in an order shuffled each round, after one round that is not counted. Backward
/// gets the O and LSE that the first kernel stores. Requires: at least one kernel, every kernel
/// supports the problem. Else throws InvalidProblem.
Measurement measure(const std::vector<const attest_kernel*>& kernels, const Problem& problem,
                    Direction direction, std::int32_t threads, int rounds, std::uint64_t seed);

/// A kernel and the problem it is timed on.
struct Candidate {
  const attest_kernel* kernel;
  Problem problem;
};

/// The same of kernels on a problem each, a sparsity pattern in the form that the kernel claims;
/// backward gets the O and LSE of the kernel's own forward.
Measurement measure(const std::vector<Candidate>& candidates, Direction direction,
                    std::int32_t threads, int rounds, std::uint64_t seed);

/// Times the kernels on one problem with values that never recur, the same for all in a round, in
/// the same memory; the outputs are looked at between the calls
/// (certify/bench/timing/watched_calls.hpp). A kernel that was right only while it was not timed
/// has an objection. [certify/bench/timing/watched_calls_test] Cost: a reference for every kernel.
Measurement measure_watched(const std::vector<const attest_kernel*>& kernels,
                            const Problem& problem, Direction direction, std::int32_t threads,
                            int rounds, std::uint64_t seed, Heartbeat& beat);

/// The same of any call: what `call` does with a kernel is timed.
Measurement measure_calls(const std::vector<const attest_kernel*>& kernels, const Problem& problem,
                          int rounds, std::uint64_t seed,
                          const std::function<attest_status(const attest_kernel&)>& call);

/// Useful operations of the direction: 4 q k d forward, 10 q k d backward, per head (recomputing
/// is not useful work).
double useful_flops(const Problem& problem, Direction direction);

}  // namespace attest::certify
