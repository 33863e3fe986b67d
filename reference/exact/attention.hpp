#pragma once

#include "core/contract/conventions.hpp"
#include "core/problem.hpp"
#include "core/tensor.hpp"
#include "reference/exact/sample.hpp"

/// The truth: attention and its gradients in float64, written for clarity with Eigen.
namespace attest::reference {

/// Exact results, f64, packed in the logical axis order of core/problem.hpp.
struct Forward {
  Tensor O;    // (batch, seqlen_q, num_heads_q, head_dim_v)
  Tensor LSE;  // (batch, num_heads_q, seqlen_q)
};

struct Backward {
  Tensor dQ;        // as Q
  Tensor dK;        // as K
  Tensor dV;        // as V
  Tensor dSinks{};  // (num_heads_q); of no element without sinks
  Tensor dBias{};   // as the bias, of extent 1 where it is broadcast; of no element without one
  // Error that rounding in float64 can bring to delta = sum of P dP - dLSE in a row, as LSE: it
  // shows where a kernel's delta is exact because the terms of its O cancel
  // (docs/theory/reference.md).
  Tensor delta_error{};
};

/// The gradient inputs of a backward pass; dLSE may be absent (null).
struct Cotangents {
  TensorView dO;
  const TensorView* dLSE = nullptr;
};

/// O = softmax(mask(softcap(scale Q K^T) + ALiBi + bias)) V and LSE = log sum exp of the visible
/// scores; a sink is one more score of a row, with a value of 0. A bias of -inf is a mask.
///
/// Shapes:   Q (batch, seqlen_q, num_heads_q, head_dim_qk), K (batch, seqlen_k, num_heads_kv,
///           head_dim_qk), V (batch, seqlen_k, num_heads_kv, head_dim_v), any dtype and strides.
/// Requires: shapes that match the problem. Else throws InvalidProblem.
/// Ensures:  rows without a visible key follow `conventions`; what a key holds that no query sees
///           reaches no result, NaN included; infinite and NaN scores: docs/theory/reference.md
///           [reference/exact/attention_test]. The error against 256-bit arithmetic is proved there
///           and below 2e-9 of float32's [reference/exact/oracle_test "reference against 256-bit
///           arithmetic"].
///           With `queries` (not null) the rows of those alone; the others are 0
///           [reference/exact/sample_test "rows alone"].
/// Cost:     one block of 128 rows of scores per thread; no bit depends on the number of threads.
/// Source:   Dao et al. 2022, Algorithm 0 (differs: float64, all features).
Forward forward(const Problem& problem, const Conventions& conventions, const TensorView& Q,
                const TensorView& K, const TensorView& V,
                const PositionsInSequences* queries = nullptr);

/// dV = P^T dO, dS = P o (dO V^T - delta), dQ = scale dS K, dK = scale dS^T Q with
/// delta_i = sum_c dO_ic O_ic - dLSE_i; softcap multiplies dS by its derivative; gradients of a
/// K/V head are summed over its group of query heads. dSinks_h = -sum of P_sink delta over the rows
/// of head h. dBias is dS before softcap's derivative and the scale, summed over the axes along
/// which the bias is broadcast. dLSE is the gradient of LSE in base e.
/// With `queries` (not null) dQ of those rows alone, and what these rows add to dK and dV.
/// Requires and source as `forward` (Dao et al. 2022, Algorithm 3).
/// [reference/exact/oracle_test, reference/exact/finite_difference_test]
Backward backward(const Problem& problem, const TensorView& Q, const TensorView& K,
                  const TensorView& V, const Cotangents& cotangents,
                  const PositionsInSequences* queries = nullptr);

}  // namespace attest::reference
