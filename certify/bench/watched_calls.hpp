#pragma once

#include <array>
#include <string>
#include <vector>

#include "certify/bench/operands.hpp"

namespace attest::certify {

/// Timed calls of one kernel on one problem, each with other values than the one before in the same
/// memory. Their outputs are looked at between the calls, so that a kernel cannot do with less
/// while it is timed: all of equal values must have equal bits where the kernel declares no less,
/// and those of one call, chosen at random, are judged by the reference.
/// [certify/bench/watched_calls_test]
class WatchedCalls {
 public:
  /// Calls forward once for each set of values where `direction` is backward, for its O and LSE.
  /// Requires: at least one round. Throws InvalidProblem when the kernel does not support the
  /// problem. The kernel must outlive it.
  WatchedCalls(const attest_kernel& kernel, const Problem& problem, proptest::Direction direction,
               std::int32_t threads, int rounds, std::uint64_t seed);

  /// Before the call of a round, -1 the one that warms up: sets its values, spoils the outputs.
  void prepare(int round);

  /// Makes the call that is timed.
  attest_status call() { return operands_.call(kernel_, direction_); }

  /// After it.
  void look(int round);

  /// After all: "" or what was wrong. Costs a reference.
  std::string objection() const;

 private:
  static constexpr std::size_t kSets = 3;
  static std::size_t set_of(int round) { return static_cast<std::size_t>(round + 1) % kSets; }
  proptest::InputValues values(std::size_t set) const;

  const attest_kernel& kernel_;
  const Problem problem_;
  proptest::Direction direction_;
  std::uint64_t seed_;
  Operands operands_;
  std::array<std::vector<Tensor>, kSets> inputs_, outputs_;  // outputs of a set's first call
  int chosen_ = 0;                                           // round that is judged
  std::vector<Tensor> judged_;                               // its outputs
  std::string differs_;
};

/// Throws InvalidProblem unless a call returned ATTEST_OK.
void require_done(attest_status status, const attest_kernel& kernel, const Problem& problem);

}  // namespace attest::certify
