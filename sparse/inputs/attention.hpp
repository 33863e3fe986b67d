#pragma once

#include <span>

#include "core/sparse_operands/sparse_kernel.hpp"

/// Exact dense softmax attention of sparse Q, K, V in float32. exp(S) = 1 1^T + expm1(S), so that
/// only pairs that share a column of Q and K need work of their own; every other key has the same
/// weight and enters through sums over all keys. docs/theory/sparse-inputs.md
namespace attest::sparse {

using Outputs = SparseOutputs;
using Gradients = SparseGradients;

/// O_i = w_i sum_j V_j + sum over the support of G_ij V_j with w_i = exp(-LSE_i),
/// G_ij = w_i expm1(s_ij).
///
/// Requires: valid operands. Else throws InvalidProblem.
/// Ensures:  |O - O_exact| and |LSE - LSE_exact| within reference::sparse_forward_bounds
///           [proptest/suites/sparse_inputs_test "within their bounds"]; rows and columns without
///           an entry are exact zeros of the scores.
/// Cost:     U + W products for U = sum over columns of Q and K of the products of their counts and
///           W the entries of V over the support, and seqlen_q head_dim_v for the rank-one part.
Outputs forward(const SparseOperands& operands);

/// dQ, dK, dV of <dO, O> from what `forward` stored. dO (seqlen_q, head_dim_v), row-major.
///
/// Requires: valid operands, sizes that match them. Else throws InvalidProblem.
/// Ensures:  within reference::sparse_backward_bounds  [proptest/suites/sparse_inputs_test "within
/// their
///           bounds"]
/// Cost:     the products of `forward` five times over the support; off it V^T K over the entries
///           of V and K, its product with dO, and V (dO^T Q) over the entries of V and Q.
Gradients backward(const SparseOperands& operands, std::span<const float> dO,
                   const Outputs& stored);

/// Throws InvalidProblem where dO or what a forward pass stored has another size than the operands.
void require_sizes(const SparseOperands& operands, std::span<const float> dO,
                   const Outputs& stored);

}  // namespace attest::sparse
