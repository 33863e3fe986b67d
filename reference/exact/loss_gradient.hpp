#pragma once

#include "core/tensor.hpp"

namespace attest::reference {

/// The inputs of the loss: A1, A2, A3, E are (seqlen, head_dim), X, Y are (head_dim, head_dim).
struct LossInputs {
  TensorView A1, A2, A3, E, X, Y;
};

struct LossGradient {
  double loss = 0;
  Tensor dX, dY;  // (head_dim, head_dim), f64
};

/// L(X, Y) = 1/2 |D^-1 exp(A1 X A2^T) A3 Y - E|_F^2 and its gradients: with f = softmax rows,
/// h = A3 Y, c = f h - E, delta = rowsum(c o (f h)), p = f o (c h^T - delta 1^T):
/// dX = A1^T p A2, dY = A3^T f^T c.
/// Requires: matching shapes. Else throws InvalidProblem.
/// Source:   Li, Liang, Shi, Song, Zhou 2024 (arXiv 2410.09397), closed form.
/// [reference/exact/loss_gradient_test]
LossGradient loss_gradient(const LossInputs& inputs);

}  // namespace attest::reference
