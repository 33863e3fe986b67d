#pragma once

#include "core/problem.hpp"
#include "core/sparse_operands/csr_matrix.hpp"

namespace attest {

/// The inputs of attention over sparse matrices, one sequence and head. Every query sees every
/// key: off the support of Q K^T scores are 0, not masked.
struct SparseOperands {
  CsrMatrix Q;  // (seqlen_q, head_dim_qk)
  CsrMatrix K;  // (seqlen_k, head_dim_qk)
  CsrMatrix V;  // (seqlen_k, head_dim_v)
  double softmax_scale = 1;

  /// Requires: valid matrices of matching shapes, at least one key, a finite scale. Else throws
  /// InvalidProblem.  [core/sparse_operands/csr_matrix_test "operands"]
  void validate() const;

  /// The same problem over dense float32 tensors.
  Problem dense_problem() const;
};

/// Throws InvalidProblem unless sparse operands can be of the problem: one head and batch entry in
/// float32, no mask and nothing else beside sizes and scale; every size at least 1, at most 2^18
/// pairs.  [sparse/inputs/schedules/input_schedules_test "spelling of inputs"]
void require_sparse_problem(const Problem& problem);

}  // namespace attest
