#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/sparse_operands/sparse_kernel.hpp"
#include "proptest/laws/law.hpp"
#include "reference/bounds/sparse.hpp"
#include "reference/exact/attention.hpp"

namespace attest::proptest {

/// Outputs of a wrong kernel: O or O and LSE, or dQ, dK and dV.
struct SparseDecoy {
  std::string name;
  std::vector<Tensor> outputs;
};

/// Exact attention of sparse inputs, by the float64 reference of the densified problem, and what
/// results are held against.
class SparseTruth {
 public:
  /// Requires: valid operands, dO (seqlen_q, head_dim_v). Else throws InvalidProblem.
  SparseTruth(const SparseOperands& operands, std::span<const float> dO);

  const SparseOperands& operands() const { return operands_; }
  const std::vector<float>& dO() const { return dO_; }
  const reference::Forward& forward() const { return forward_; }
  const reference::Backward& backward() const { return backward_; }

  /// Tells whether O and LSE have as many elements as they must.
  bool of_size(const SparseOutputs& outputs) const;

  reference::SparseForwardBounds forward_bounds(Subtracted subtracted) const;
  /// Requires: stored outputs of their size.
  reference::SparseBackwardBounds backward_bounds(const SparseOutputs& stored) const;

  /// Every element of O and LSE, or of dQ, dK and dV given what the kernel's forward pass stored,
  /// against its proved bound. `violated` also for results of another size; `unsupported` where an
  /// element has no bound; `vacuous` where zeros, the mean of V, or attention in which pairs that
  /// share no column are hidden would pass too though they are not the exact result.
  /// [certify/sparse_inputs/sparse_inputs_check_test "wrong kernels of sparse inputs are refused",
  /// "what proves nothing"]
  LawResult judge(const SparseOutputs& got, Subtracted subtracted) const;
  LawResult judge(const SparseOutputs& stored, const SparseGradients& got) const;

  /// Names the wrong results that are the exact ones on these inputs, bit for bit: a kernel that
  /// makes the mistake is right here. Forward, and backward.
  /// [certify/sparse_inputs/sparse_inputs_check_test "mistakes that inputs do not show are named"]
  std::vector<std::string> unseen_forward() const;
  std::vector<std::string> unseen_backward() const;

 private:
  SparseOperands operands_;
  std::vector<float> dO_;
  Problem problem_;
  Tensor dO_tensor_;
  reference::Forward forward_;
  reference::Backward backward_;
  std::vector<SparseDecoy> forward_decoys_, backward_decoys_;
};

}  // namespace attest::proptest
