#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/numerics.hpp"
#include "proptest/compare.hpp"
#include "proptest/run.hpp"
#include "reference/attention.hpp"
#include "reference/bounds.hpp"

namespace attest::proptest {

/// Exact results and bounds for one set of values under a kernel's contract. Throws InvalidProblem
/// for values without an answer, see require_answer. Thread-safe: campaigns share one among
/// their jobs, and the nightly runs them under ThreadSanitizer.
class Truth {
 public:
  Truth(const attest_description& description, const Problem& problem, const InputValues& values,
        Direction direction, std::uint64_t seed);

  const reference::Forward& forward() const { return forward_; }
  const reference::ForwardBounds& forward_bounds() const { return forward_bounds_; }
  const reference::Backward& backward() const { return backward_; }

  /// Bounds of the gradients, given what the kernel's forward pass stored. Computed once for every
  /// O and LSE.
  const reference::BackwardBounds& backward_bounds(const KernelRun& run) const;

  /// Whether every exact result, and dS where it is cast, stays below 3e4 in f16: beyond it a
  /// correct kernel may overflow and no bound is claimed. Always true for other dtypes.
  bool in_domain() const;

  /// Compares every output of a run: O and LSE, then dQ, dK, dV.
  std::vector<Comparison> judge(const KernelRun& run) const;

  /// The term of the contract ("accumulation", "cast of P"; "stored O and LSE" for gradients)
  /// without which the bound of the worst element of a judged output shrinks most. Costs the bounds
  /// once per term.  [proptest/contract_terms_test "the term that dominates is named"]
  std::string dominating_term(const KernelRun& run, const Comparison& comparison) const;

  /// Compares two runs that should give the same outputs, within the sum of their bounds.
  std::vector<Comparison> agreement(const KernelRun& first, const KernelRun& second) const;

  /// Names of decoys (plausible wrong results) that would pass although they differ from the truth:
  /// with one, the comparison could not have failed and counts for nothing. `run` gives the stored
  /// O and LSE.  [proptest/case_test "flat problems are vacuous"]
  std::vector<std::string> passing_decoys(const KernelRun& run) const;

 private:
  reference::BackwardBounds backward_bounds(const Numerics& numerics,
                                            const reference::Stored& stored) const;
  std::vector<std::string> forward_decoys() const;
  std::vector<std::string> backward_decoys(const KernelRun& run) const;

  const attest_description& description_;
  const Problem& problem_;
  const InputValues& values_;
  Direction direction_;
  Conventions conventions_;
  Numerics numerics_;
  reference::Cotangents cotangents_;
  reference::Forward forward_, plain_forward_;  // in the kernel's conventions, and in ours
  reference::ForwardBounds forward_bounds_;
  reference::Backward backward_;

  struct Remembered {
    Tensor O, LSE;  // what forward stored
    reference::BackwardBounds bounds;
  };
  mutable std::list<Remembered> bounds_;                                // elements do not move
  std::unique_ptr<std::mutex> guard_ = std::make_unique<std::mutex>();  // of bounds_
};

/// The gravest verdict and its reason.
struct Judgement {
  Verdict verdict = Verdict::unsupported;
  std::string reason;
};
Judgement gravest(const std::vector<Comparison>& comparisons);

}  // namespace attest::proptest
