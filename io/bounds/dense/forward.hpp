#pragma once

#include <vector>

#include "io/bounds/bound.hpp"
#include "io/bounds/extent.hpp"
#include "io/bounds/segments.hpp"

/// Lower bounds for attention forward: O, and LSE where KernelClass says so. Z, the rows and the
/// columns are those of Extent; d_k, d_v its head dimensions; M is fast_words.
///
/// Every function below: requires fast_words >= 1 and sizes of dense_extent or extent_of, else
/// throws InvalidProblem; a case outside the range of validity or of the class gives a Bound that
/// does not apply and says why; does not increase with fast_words  [io/bounds/dense/forward_test
/// "monotone"]; is not above the least traffic of tiny problems  [io/pebble/bounds_test].
namespace attest::io {

/// rows_many d_k + columns_many d_k + columns_seen d_v + rows d_v; with LSE all rows that see a key
/// count for Q, all such keys for K, and one word a row is added. Shared storage is counted once.
/// Proved: docs/theory/bounds/compulsory.md. Needs K1, K2, K4.
/// [io/bounds/dense/forward_test "compulsory"]
Bound compulsory_forward(const Extent& extent, const KernelClass& kernel);

/// 2 Z d_k / sqrt(M) - Z - 2M: the products of QK^T alone. Proved: docs/theory/bounds/scores.md,
/// for M <= 4 d_k^2 (beyond, it is negative). Needs K1 to K6, each evaluation of a score one chain.
Bound scores_only(const Extent& extent, const KernelClass& kernel, std::int64_t fast_words);

/// max over X and Y of Y + X (h - 1), h = ceil((Z - F(Y)) / F(M+X)) >= 1, F(B) = max(B, (B / 2
/// d_k)^2); for M
/// >= 2 d_k^2 at least Z d_k^2 / M. Proved: docs/theory/bounds/scores.md. Needs K1 to K6.
Bound scores_only_large(const Extent& extent, const KernelClass& kernel, std::int64_t fast_words);

/// Theorem A: max over X and Y of Y + X (h - 1), h = ceil((Z d_v - F(Y)) / F(M+X)) >= 1, F =
/// forward_segment_maximum. Recomputation of S and P allowed; any mask, M, d_k, d_v. Proved:
/// docs/theory/bounds/theorem-a.md. Needs K1 to K6.  [io/bounds/dense/forward_test "theorem A"]
Bound theorem_a(const Extent& extent, const KernelClass& kernel, std::int64_t fast_words);

/// Corollary of theorem A: 4 Z d^2 / M. Proved for d_k = d_v = d and M >= 4d^2. Needs K1 to K6.
Bound theorem_a_large(const Extent& extent, const KernelClass& kernel, std::int64_t fast_words);

/// Theorem B: 2 Z (d_k + d_v) / sqrt(M) - Z - 2M, and the best X instead of 2M. Proved:
/// docs/theory/bounds/theorem-b.md, for M <= 4 d_k^2, for every M if the kernel evaluates once.
/// Needs K1 to K6, each evaluation of a score one chain.  [io/bounds/dense/forward_test "theorem
/// B"]
Bound theorem_b(const Extent& extent, const KernelClass& kernel, std::int64_t fast_words);

/// max over X and Y of Y + X (h - 1) - Z, h = ceil((Z (d_k + d_v) - F(Y)) / F(M+X)) >= 1, F(B) =
/// (B/3)^(3/2). Proved for kernels that evaluate once only: with the ceiling it is not monotone in
/// the number of evaluations. Needs K1 to K6.  [io/bounds/class_test "recomputing kernels"]
Bound theorem_b_once(const Extent& extent, const KernelClass& kernel, std::int64_t fast_words);

/// The greatest of those of `others` that speak of rows with at least two visible keys alone, and
/// what else must move: O of the other rows, V of keys that only these see, LSE if it is written.
/// Proved: docs/theory/bounds/compulsory.md. Needs K1 to K6; others for the same case and kernel.
/// [io/bounds/dense/forward_test "fewer than two keys", io/pebble/bounds_test]
Bound forward_other_rows(const Extent& extent, const KernelClass& kernel, std::int64_t fast_words,
                         const std::vector<Bound>& others);

/// All of the above but the last.
std::vector<Bound> forward_bounds(const Extent& extent, const KernelClass& kernel,
                                  std::int64_t fast_words);

/// F of theorem A: the most multiply-adds into O in a segment with B usable words,
/// max(k1 (B / 2(d_k + k1))^2, k2 (sqrt(k2^2 + B) - k2)^2), k1 = min(d_k, d_v),
/// k2 = min(d_v, sqrt(B/3)).  [io/bounds/dense/forward_test "segment maximum"]
double forward_segment_maximum(double usable_words, std::int64_t head_dim_qk,
                               std::int64_t head_dim_v);

/// (B/3)^(3/2): the most multiply-adds with one word of each of three kinds, kinds not shared.
double product_segment_maximum(double usable_words);

/// Coefficient of Z in the lower bound to leading order, d_k = d_v, theta = M/d^2:
/// 4a^2 for a = 1/sqrt(theta) <= 1/2, 4a - 1 above.  [io/bounds/dense/coefficients_test "table"]
///
/// Requires: theta > 0. Else throws InvalidProblem.
double forward_lower_coefficient(double theta);

}  // namespace attest::io
