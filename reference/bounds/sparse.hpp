#pragma once

#include "core/numerics.hpp"
#include "core/sparse_operands/sparse_kernel.hpp"
#include "reference/bounds/bounds.hpp"
#include "reference/exact/attention.hpp"

/// Error bounds per element of dense softmax attention of sparse inputs through exp(S) = 1 1^T +
/// expm1(S). The truth is `forward` and `backward` of the densified problem
/// (SparseOperands::dense_problem); the structure of the operands says which keys a row treats
/// apart. Derivation and validation: docs/theory/sparse-inputs.md.
namespace attest::reference {

/// Proved bounds, f64 tensors of the shapes of O (1, seqlen_q, 1, head_dim_v) and LSE
/// (1, 1, seqlen_q); +inf where nothing is proved.
struct SparseForwardBounds {
  Tensor O, LSE;
};

/// As dQ, dK, dV.
struct SparseBackwardBounds {
  Tensor dQ, dK, dV;
};

/// `exact` is `forward` of the dense problem.
///
/// Requires: valid operands, a contract that accumulates in f32 or f64 to nearest. Else throws
/// InvalidProblem.  [proptest/suites/sparse_inputs_test "contracts without a bound"]
/// Ensures:  a kernel of the identity under this contract errs by no more
///           [proptest/suites/sparse_inputs_test "within their bounds"]; a wrong one does
///           [proptest/suites/sparse_inputs_test "wrong kernels"].
SparseForwardBounds sparse_forward_bounds(const SparseOperands& operands, const Numerics& numerics,
                                          const Forward& exact,
                                          Subtracted subtracted = Subtracted::final_maximum);

/// dO (1, seqlen_q, 1, head_dim_v); `stored` is what the kernel's forward pass left, LSE in base e.
/// Requires and ensures as sparse_forward_bounds.
SparseBackwardBounds sparse_backward_bounds(const SparseOperands& operands,
                                            const Numerics& numerics, const TensorView& dO,
                                            const Stored& stored, const Forward& exact_forward,
                                            const Backward& exact_backward);

}  // namespace attest::reference
