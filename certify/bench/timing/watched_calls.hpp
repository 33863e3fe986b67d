#pragma once

#include <optional>
#include <random>
#include <string>
#include <vector>

#include "certify/bench/operands.hpp"
#include "certify/bench/timing/heartbeat.hpp"
#include "reference/exact/sample.hpp"

namespace attest::certify {

/// Timed calls of one kernel on one problem, each with values that no call had before, in the same
/// memory. Their outputs are looked at between the calls, so that a kernel that does with less
/// while it is timed is seen: forward a row of every call, drawn after it, and all of one call,
/// drawn among all, are judged by the reference.  [certify/bench/timing/watched_calls_test]
class WatchedCalls {
 public:
  /// The kernel and the heart must outlive it.
  WatchedCalls(const attest_kernel& kernel, const Problem& problem, Direction direction,
               std::int32_t threads, std::uint64_t seed, KernelHeart heart);

  /// The values of a round, -1 the one that warms up, for every kernel alike.
  static proptest::InputValues values(const Problem& problem, std::uint64_t seed, int round);

  /// Before the call of a round: takes its values, has forward store O and LSE where the direction
  /// is backward, and spoils the outputs. Throws InvalidProblem when forward does not succeed.
  void prepare(const proptest::InputValues& values, int round);

  /// Makes the call that is timed.
  attest_status call() { return operands_.call(kernel_, direction_); }

  /// After it.
  void look(const proptest::InputValues& values, int round);

  /// After all: "" or what was wrong. Costs a reference.
  std::string objection() const;

 private:
  std::string violation(const proptest::InputValues& values, const proptest::KernelRun& run,
                        std::optional<reference::Sample> sample) const;
  proptest::KernelRun run() const;
  std::int64_t drawn_below(std::int64_t count);

  const attest_kernel& kernel_;
  const Problem problem_;
  Direction direction_;
  std::uint64_t seed_;
  KernelHeart heart_;
  Operands operands_;
  std::random_device random_;   // a kernel may know the seed
  std::vector<Tensor> stored_;  // O and LSE that backward reads
  int chosen_ = -1;             // round that is judged whole
  proptest::KernelRun judged_;  // its outputs
  std::string violated_;
};

/// Throws InvalidProblem unless a call returned ATTEST_OK.
void require_done(attest_status status, const attest_kernel& kernel, const Problem& problem);

}  // namespace attest::certify
