#pragma once

#include "reference/exact/loss_gradient.hpp"
#include "reference/group.hpp"

namespace attest::reference {

/// Every intermediate of the loss gradient's closed form; names as in loss_gradient.hpp.
struct LossTerms {
  Matrix A1, A2, A3, X, Y;
  Matrix A1X;       // (seqlen, head_dim)
  Matrix S, f;      // (seqlen, seqlen)
  Matrix h, fh, c;  // (seqlen, head_dim)
  Vector delta;
  Matrix q;  // c h^T
  Matrix p;  // f o (q - delta 1^T)
};

/// Requires: matching shapes. Else throws InvalidProblem.
/// [reference/exact/loss_gradient_test]
LossTerms loss_terms(const LossInputs& inputs);

/// A (head_dim, head_dim) result.
Tensor square_tensor(std::string_view name, const Matrix& matrix);

}  // namespace attest::reference
