#pragma once

#include "core/numerics.hpp"
#include "core/sparse_operands/sparse_operands.hpp"
#include "reference/exact/attention.hpp"
#include "reference/group.hpp"

namespace attest::reference {

/// A sparse operand as dense matrices.
struct DenseOperand {
  Matrix values;
  Matrix magnitude;  // |values|
  Matrix present;    // 1 for an entry of the structure, even one that holds 0

  explicit DenseOperand(const CsrMatrix& matrix);
};

/// The exact weights of every pair and what the identity makes of them:
/// P_ij = w_i + G_ij, G = 0 off the support, w = 0 in rows whose support is every key.
struct SparseWeights {
  DenseOperand Q, K, V;
  Matrix S, P;         // (seqlen_q, seqlen_k), every pair
  Matrix support, G;   // (seqlen_q, seqlen_k)
  Matrix score_error;  // E, 0 off the support
  Vector LSE, w, maximum;
  Vector keys;  // of each row's support

  SparseWeights(const SparseOperands& operands, const Numerics& numerics, const Forward& exact);

  /// Tells whether the support of a row is every key.
  bool full(Eigen::Index row) const { return keys(row) == static_cast<double>(P.cols()); }

  /// Bounds of |G' - G|, G' the kernel's weights but for a factor common to the row:
  /// `distance` (seqlen_q, seqlen_k) bounds the arguments of exponentials of differences, `flush`
  /// (seqlen_q) what an underflow loses, `rescales` (seqlen_q) the logarithm of what rescaling
  /// adds.
  Matrix errors(const Numerics& numerics, const Matrix& distance, const Vector& flush,
                const Vector& rescales) const;

  /// The most often that the running maximum of a row may rise, keys ascending: computed scores
  /// that may exceed all before.
  Vector rises() const;
};

/// gamma(n, u) of every element.
Matrix gamma(const Matrix& terms, double u);

/// Throws InvalidProblem unless the sparse bounds cover the contract.
void require_sparse_contract(const Numerics& numerics);

/// A matrix written to a tensor (1, rows, 1, columns), NaN (0 times an infinite error) as +inf.
Tensor bound_tensor(const char* name, const std::vector<Axis>& axes, const Matrix& bound);

/// The matrix of a tensor (1, rows, 1, columns).
Matrix matrix_of(const TensorView& tensor);

}  // namespace attest::reference
