#pragma once

#include <vector>

#include "io/bounds/bound.hpp"
#include "io/bounds/extent.hpp"

/// Lower bounds for attention backward: dQ, dK, dV from Q, K, V, dO. d = min(d_k, d_v), a =
/// d/sqrt(M), M is fast_words. Requirements and guarantees as in io/bounds/dense/forward.hpp
/// [io/bounds/dense/backward_test "monotone", io/pebble/bounds_test].
namespace attest::io {

/// rows_many (d_k + d_v) + rows_one d_v + columns_many (d_k + d_v) read, rows d_k + keys (d_k +
/// d_v) written. O and LSE are not compulsory: delta = sum P dP, and LSE can be recomputed. Shared
/// storage is counted once. Proved: docs/theory/bounds/compulsory.md. Needs K1, K2, K4.
/// [io/bounds/dense/backward_test "compulsory"]
Bound compulsory_backward(const Extent& extent, const KernelClass& kernel);

/// Theorem C: max over X and Y of Y + X (h - 1), h = ceil((12 Z - G(Y)) / G(M+X)) >= 1, G =
/// backward_segment_maximum. Recomputation and carried values allowed. Proved:
/// docs/theory/bounds/theorem-c.md. Needs K1 to K6. [io/bounds/dense/backward_test "theorem C"]
Bound theorem_c(const Extent& extent, const KernelClass& kernel, std::int64_t fast_words);

/// Corollary of theorem C: 12 Z d^2 / M. Proved for M >= 128/27 d^2. Needs K1 to K6.
Bound theorem_c_large(const Extent& extent, const KernelClass& kernel, std::int64_t fast_words);

/// (3 sqrt(3) d_k + 4 d_v) Z / sqrt(M) - 2Z - 2M, and the best X instead of 2M; recomputation
/// allowed. Proved for M <= 3 d_k^2 and M <= 4 d_v^2, or for kernels that evaluate P and dP once:
/// docs/theory/bounds/backward-small.md. Needs K1 to K6, each evaluation of a score and of dP one
/// chain. [io/bounds/dense/backward_test "small cache"]
Bound backward_small(const Extent& extent, const KernelClass& kernel, std::int64_t fast_words);

/// The multiply-adds of a backward pass, by the words that they read and write.
struct BackwardProducts {
  double scores = 0;           // Q_il K_jl, into scores
  double score_gradients = 0;  // dS_ij K_jl and dS_ij Q_il, into dQ and dK
  double values = 0;           // dO_il V_jl and P_ij dO_il, into dP and dV
};

/// Weights of multiply-adds in backward_weighted_products; those of values count 1.
struct BackwardWeights {
  double scores = 0, score_gradients = 0;  // y, v: y <= 2 v sqrt(1 - v^2), 1/2 <= v^2 <= 1
};

/// y and v that make y scores + v score_gradients the greatest.
BackwardWeights best_backward_weights(const BackwardProducts& products);

/// y scores + v score_gradients + values, rounded down: in a segment with B usable words at most
/// product_segment_maximum(B). docs/theory/bounds/backward-small.md
/// [io/bounds/dense/backward_test "five products"]
double backward_weighted_products(const BackwardProducts& products);

/// 14 Z d^2 / M - (q + 2k) d. Proved for schedules in which all rows of an index enter and leave
/// together, no word of a pair outlives its visit and a read-modify-write costs two words:
/// docs/theory/bounds/row-atomic.md. Needs K1 to K6, RowMovement::whole_index.
/// [io/bounds/dense/backward_test "whole indices"]
Bound backward_row_atomic(const Extent& extent, const KernelClass& kernel, std::int64_t fast_words);

/// (4E - S)/3, S = (3 rows_many + 4 columns_many) d, E the greatest of S and of those of `others`
/// that count events: theorem C, by pattern and with weights too. Proved for schedules as above
/// that evaluate every score once, so that a pair has one visit, as in FlashAttention-2's backward:
/// to leading order 16 Z d^2 / M. docs/theory/bounds/row-atomic.md. Needs K1 to K6,
/// RowMovement::whole_index, Evaluation::once; others for the same case and kernel.
/// [io/bounds/dense/backward_test "single pass", schedules/whole_rows_test "one visit"]
Bound backward_single_pass(const Extent& extent, const KernelClass& kernel, std::int64_t fast_words,
                           const std::vector<Bound>& others);

/// 14 Z d^2 / M as the true constant for every kernel: a conjecture, between the 12 that is proved
/// and the 14 that two_pass_row reaches. docs/theory/bounds/row-atomic.md
Bound backward_conjecture(const Extent& extent, const KernelClass& kernel, std::int64_t fast_words);

/// The greatest of those of `others` that speak of rows with at least two visible keys alone, and
/// what else must move: dQ of the other rows, dK and dV of keys that only these or none see, dO of
/// rows with one key. Proved: docs/theory/bounds/compulsory.md. Needs K1 to K6; others for the same
/// case and kernel.  [io/bounds/dense/backward_test "fewer than two keys", io/pebble/bounds_test]
Bound backward_other_rows(const Extent& extent, const KernelClass& kernel, std::int64_t fast_words,
                          const std::vector<Bound>& others);

/// The greatest of other bounds for the same case and kernel, and rows_many (d_v + 1) words: O and
/// LSE, which no other bound counts. Proved: docs/theory/bounds/compulsory.md. Needs K1 to K6, O
/// stored apart from the operands, SavedOutputs::read.
/// [io/bounds/dense/backward_test "saved outputs", io/pebble/bounds_test]
Bound backward_saved_outputs(const Extent& extent, const KernelClass& kernel,
                             std::int64_t fast_words, const std::vector<Bound>& others);

/// All of the above that do not take others.
std::vector<Bound> backward_bounds(const Extent& extent, const KernelClass& kernel,
                                   std::int64_t fast_words);

/// G of theorem C, a multiply-add counted as 4/d: d^2 max(b^2/4, (4b/3) sqrt(b/3)), b = B/d^2.
/// [io/bounds/dense/backward_test "segment maximum"]
double backward_segment_maximum(double usable_words, std::int64_t head_dim);

/// Coefficient of Z in the lower bound to leading order, d_k = d_v, theta = M/d^2: the greater of
/// theorem C's and backward_small's.  [io/bounds/dense/coefficients_test "table"]
///
/// Requires: theta > 0. Else throws InvalidProblem.
double backward_lower_coefficient(double theta);

}  // namespace attest::io
