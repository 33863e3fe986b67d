#pragma once

#include "reference/bounds/bounds.hpp"
#include "reference/exact/loss_gradient.hpp"

namespace attest::reference {

struct LossBounds {
  ErrorBound dX, dY;  // (head_dim, head_dim)
};

/// Error bounds of the loss gradient for a kernel that keeps every intermediate result in the
/// accumulator's type: any order of addition, either association of A1^T p A2, of A3^T f^T c and of
/// A1 X A2^T, delta from c o (f h) or from f o q, p = f o (q - delta) or f o q - delta f, weights
/// normalised by their sum or recomputed from LSE.
/// Derivation: docs/theory/loss-gradient-bounds.md.
/// Requires: matching shapes, at least one row; a contract that casts neither P nor a scaled Q,
///           merges no splits through LSE and does not accumulate in f16.  Else throws
///           InvalidProblem.
/// Ensures:  such a kernel's dX and dY lie within.  [reference/bounds/loss_test,
///           proptest/suites/loss_validation_test]
/// Cost:     about 5.6 times loss_gradient.
LossBounds loss_bounds(const Numerics& numerics, const LossInputs& inputs);

/// "" when loss_bounds covers the contract, else why not.
std::string uncovered_by_loss_bounds(const Numerics& numerics);

}  // namespace attest::reference
