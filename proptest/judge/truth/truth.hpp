#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/numerics.hpp"
#include "proptest/judge/compare.hpp"
#include "proptest/judge/run.hpp"
#include "reference/bounds/bounds.hpp"
#include "reference/exact/attention.hpp"
#include "reference/exact/sample.hpp"

namespace attest::proptest {

/// The forward part of a truth, which many truths share: that of other output gradients.
struct ForwardTruth {
  reference::Forward exact, plain;  // in the kernel's conventions, and in ours
  reference::ForwardBounds bounds;
};

/// Returns what a run's forward pass left for its backward pass: no LSE where the run has none.
reference::Stored stored_by(const KernelRun& run);

/// Exact results and bounds for one set of values under a kernel's contract. With a sample `judge`
/// and the decoys look at its rows and keys alone; all else is for truths without one. Throws
/// InvalidProblem for values without an answer, see require_answer. Thread-safe: campaigns share
/// one among their jobs, and the nightly runs them under ThreadSanitizer.
class Truth {
 public:
  Truth(const attest_description& description, const Problem& problem, const InputValues& values,
        Direction direction, std::uint64_t seed,
        std::optional<reference::Sample> sample = std::nullopt);
  Truth(const Truth&) = delete;
  Truth& operator=(const Truth&) = delete;

  /// Tells whether these arguments give this truth: the layout of the problem and the values of
  /// dLSE where there is no gradient of it do not enter.  [proptest/judge/recent_test "truths"]
  bool answers(const attest_description& description, const Problem& problem,
               const InputValues& values, Direction direction, std::uint64_t seed) const;

  /// About how many bytes this object holds.
  std::size_t bytes() const;

  const reference::Forward& forward() const { return forward_->exact; }
  const reference::ForwardBounds& forward_bounds() const { return forward_->bounds; }
  const reference::Backward& backward() const { return backward_; }

  /// Bounds of the gradients, given what the kernel's forward pass stored, which may be O alone.
  /// Computed once for every O and LSE.
  const reference::BackwardBounds& backward_bounds(const KernelRun& run) const;

  /// Tells whether every exact result, and dS where it is cast, stays below 3e4 in f16: beyond it a
  /// correct kernel may overflow and no bound is claimed; nor where sums are kept in f16 that may
  /// leave its range. Always true for other dtypes and accumulators.
  bool in_domain() const;

  /// Compares every output of a run: O and LSE, then dQ, dK, dV, dSinks and dBias.
  std::vector<Comparison> judge(const KernelRun& run) const;

  /// The term of the contract ("accumulation", "cast of P"; "stored O and LSE" for gradients, or
  /// "stored O" and "an LSE that is not given") without which the bound of the worst element of a
  /// judged output shrinks most. Costs the bounds once per term.
  /// [proptest/judge/contract_terms_test "the term that dominates is named"]
  std::string dominating_term(const KernelRun& run, const Comparison& comparison) const;

  /// Compares two runs that should give the same outputs, within the sum of their bounds.
  std::vector<Comparison> agreement(const KernelRun& first, const KernelRun& second) const;

  /// Names of decoys (plausible wrong results) that would pass although they differ from the truth:
  /// with one, the comparison could not have failed and counts for nothing. `run` gives the stored
  /// O and LSE.  [proptest/values/case_test "flat problems are vacuous"]
  std::vector<std::string> passing_decoys(const KernelRun& run) const;

 private:
  // The queries and keys of the sample in the tensors; null without one.
  struct JudgedAxes {
    Judged queries, keys;
  };
  const Judged* judged_queries() const { return judged_ ? &judged_->queries : nullptr; }
  const Judged* judged_keys() const { return judged_ ? &judged_->keys : nullptr; }
  const reference::PositionsInSequences* sampled_queries() const {
    return sample_ ? &sample_->queries : nullptr;
  }
  const reference::Sample* sample() const { return sample_ ? &*sample_ : nullptr; }
  static JudgedAxes judged_axes(const Problem& problem, const reference::Sample& sample);

  reference::BackwardBounds backward_bounds(const Numerics& numerics,
                                            const reference::Stored& stored) const;
  bool scores_fit_f16() const;
  bool gradients_fit_f16() const;
  double heaviest_key() const;
  std::vector<std::string> forward_decoys() const;
  std::vector<std::string> backward_decoys(const KernelRun& run) const;

  const attest_description description_;
  const Problem problem_;
  const InputValues values_;
  std::string mathematics_;  // the problem's spelling without its layout
  Direction direction_;
  std::optional<reference::Sample> sample_;
  std::optional<JudgedAxes> judged_;
  Conventions conventions_;
  Numerics numerics_;
  reference::Cotangents cotangents_;
  std::shared_ptr<const ForwardTruth> forward_;
  reference::Backward backward_;

  struct Remembered {
    Tensor O, LSE;  // what forward stored
    reference::BackwardBounds bounds;
  };
  mutable std::list<Remembered> bounds_;                                // elements do not move
  std::unique_ptr<std::mutex> guard_ = std::make_unique<std::mutex>();  // of bounds_
};

/// The truth of these arguments, which this thread computes once for the laws that ask for it in a
/// row.  [proptest/judge/recent_test "truths"]
std::shared_ptr<const Truth> shared_truth(const attest_description& description,
                                          const Problem& problem, const InputValues& values,
                                          Direction direction, std::uint64_t seed);

/// The gravest verdict and its reason.
struct Judgement {
  Verdict verdict = Verdict::unsupported;
  std::string reason;
};
Judgement gravest(const std::vector<Comparison>& comparisons);

}  // namespace attest::proptest
