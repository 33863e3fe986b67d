#pragma once

#include <string>
#include <vector>

#include "proptest/judge/compare.hpp"
#include "proptest/judge/run.hpp"
#include "reference/bounds/loss.hpp"

/// The gradient of the attention loss (Li et al. 2024) as generated cases, runs and truth.
namespace attest::proptest {

/// Input values, f64 but rounded to the dtype: A1, A2, A3, E (seqlen, head_dim), X, Y (head_dim,
/// head_dim).
struct LossValues {
  Tensor A1, A2, A3, E, X, Y;

  reference::LossInputs inputs() const;
};

/// The family's values: A1, A2, A3 and E are what attention would get as Q, K, V and dO; X is the
/// softmax scale times a perturbed identity, Y a perturbed identity, so that the family keeps its
/// meaning.  [proptest/judge/loss_test]
/// Requires: a problem that `unclaimed` has no objection to.
LossValues make_loss_values(const Problem& problem, Values values, std::uint64_t seed);

/// A loss-gradient problem of the size of an attention layer: its keys and its head dimension.
Problem loss_problem_like(const Problem& attention, DType dtype);

/// Results that a call left behind.
struct LossRun {
  attest_status status = ATTEST_OK;
  std::string misconduct;  // "" or what was overwritten
  std::string words;       // as KernelRun::words
  Tensor dX, dY;           // packed, in the dtype of the problem; dY only where it is claimed
};

/// Tells whether the kernel writes dY.
bool writes_dy(const attest_description& description);

/// Calls loss_gradient on fresh poisoned memory with the problem's strides.
LossRun run_loss(const attest_kernel& kernel, const Problem& problem, const LossValues& values,
                 const Case& of);

/// Exact gradients and their bounds under a kernel's contract.
class LossTruth {
 public:
  /// Requires: a contract that reference::loss_bounds covers.
  LossTruth(const attest_description& description, const Problem& problem,
            const LossValues& values);

  const reference::LossGradient& exact() const { return exact_; }
  const reference::LossBounds& bounds() const { return bounds_; }

  /// Tells whether the gradients stay below 3e4 in f16. Always true for other dtypes.
  bool in_domain() const;

  /// dX, and dY where the kernel claims it, compared with the exact gradients.
  std::vector<Comparison> judge(const LossRun& run) const;

  /// Decoys that would pass although they differ: all-zero dX or dY, E left out, equal weights. For
  /// a kernel that writes no dY, dX alone decides.
  /// [proptest/judge/loss_test]
  std::vector<std::string> passing_decoys() const;

 private:
  enum class Outputs : std::uint8_t { dx, dx_and_dy };

  const Problem& problem_;
  const LossValues& values_;
  Outputs outputs_;
  reference::LossGradient exact_;
  reference::LossBounds bounds_;
};

}  // namespace attest::proptest
