#pragma once

#include "io/bounds/bound.hpp"
#include "io/bounds/extent.hpp"

/// Lower bounds for matrix products around attention: one product, fast multiplication, sparse
/// inputs. M is fast_words. Requirements and guarantees as in io/bounds/dense/forward.hpp.
namespace attest::io {

struct ProductExtent {
  std::int64_t rows = 1, columns = 1, depth = 1;  // C (rows, columns) = A (rows, depth) B
};

/// 2 m n k / sqrt(M) - 2M for one standard product, C written. Cited: Smith, Lowery, Langou, van de
/// Geijn 2019, "A tight I/O lower bound for matrix multiplication". docs/theory/bounds/scores.md
Bound matrix_product(const ProductExtent& extent, const KernelClass& kernel,
                     std::int64_t fast_words);

/// max over X and Y of Y + X (h - 1), h = ceil((N - F(Y)) / F(M+X)) >= 1, F(B) = B^2/d_k^2 + 2B, N
/// = qk; at X = M at least M floor(N / (4M^2/d_k^2 + 4M)): every algorithm that forms each score as
/// a word, fast multiplication included, over a field with at least max(q, k) elements (over the
/// reals, arithmetic circuits). Proved: docs/theory/bounds/fast-multiplication.md. K2 is not
/// needed. [io/bounds/dense/products_test "fast multiplication"]
///
/// Needs K1, K3, K6; every query sees every key.
Bound fast_multiplication(const Extent& extent, const KernelClass& kernel, std::int64_t fast_words);

/// Sparse Q and K: what the sizes of an Extent do not say.
struct SparseInputs {
  std::int64_t products =
      0;  // U: nonzero products Q_il K_jl over the pairs counted in Extent::pairs
  std::int64_t nonzeros = 0;  // of Q, K and V together
};

/// 2 (U + Z d_v) / sqrt(M) - Z - 2M, Z pairs with a nonzero score, which alone have a weight
/// (masked softmax). Proved for kernels that evaluate once: docs/theory/bounds/sparse-inputs.md.
/// Needs K1 to K6.
Bound sparse_inputs_once(const Extent& extent, const SparseInputs& inputs,
                         const KernelClass& kernel, std::int64_t fast_words);

/// nnz min(sqrt(Z) / sqrt(M), nnz / M), up to a constant. Cited: Pagh and Stockel 2014, for one
/// sparse product with Z nonzeros in the result. docs/theory/bounds/sparse-inputs.md
Bound sparse_product_order(const Extent& extent, const SparseInputs& inputs,
                           const KernelClass& kernel, std::int64_t fast_words);

/// Entries in the terms of Li et al. 2024, whose scores are A_1 X A_2^T. For Q and K as they are X
/// is the identity, with head_dim_qk entries, and A_1 X is Q.
struct AttentionEntries {
  std::int64_t A = 0;    // of A_1, A_2 and A_3: Q, K and V
  std::int64_t X = 0;    // of X
  std::int64_t AX = 0;   // of A_1 X
  std::int64_t AXA = 0;  // of the scores
};

/// min((Z_A^2 + Z_A Z_X)/M, (Z_A sqrt(Z_AXA) + sqrt(Z_A Z_X Z_AX))/sqrt(M)), up to a constant:
/// sparse attention, forward and backward. Cited: Li et al. 2024, theorem 4.5.
/// docs/theory/bounds/sparse-inputs.md  [io/bounds/dense/products_test "theorem 4.5"]
Bound sparse_attention_order(const AttentionEntries& entries, const KernelClass& kernel,
                             std::int64_t fast_words);

}  // namespace attest::io
