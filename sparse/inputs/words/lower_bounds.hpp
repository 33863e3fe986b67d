#pragma once

#include <vector>

#include "core/sparse_operands/sparse_operands.hpp"
#include "io/bounds/dense/products.hpp"

namespace attest::sparse {

/// Counts that the words depend on besides sizes.
struct Work {
  std::int64_t pairs = 0;              // Z: pairs of the support of Q K^T
  std::int64_t score_products = 0;     // U: entries of Q times entries of K in the same column
  std::int64_t value_products = 0;     // W: entries of V over the pairs of the support
  std::int64_t gradient_products = 0;  // entries of K_j and of Q_i over the same pairs
  std::int64_t nonzeros = 0;           // of Q, K and V
};

/// [sparse/inputs/words/lower_bounds_test "work"]
Work work_of(const SparseOperands& operands);

/// The class with these operands: with scale 0 no score has to be formed (K2).
/// [sparse/inputs/words/lower_bounds_test "where nothing need be formed"]
io::KernelClass class_on(const SparseOperands& operands, io::KernelClass kernel);

/// Everything that bounds the words of a forward pass with dense softmax, offsets and indices left
/// out:
///   sparse_operands_compulsory  entries of V, entries of Q and K that meet another, O
///   sparse_operands_once        2 (U + W) / sqrt(M) - Z - 2M; with all of V present W = Z d_v
///   sparse_product_order, sparse_attention_order  cited, leading order
/// Needs K1 to K6, at least two keys and an entry of V; the second also that scores are evaluated
/// once.
///
/// Requires: valid operands, fast_words at least 1. Else throws InvalidProblem.
/// Ensures:  no counted schedule moves fewer words  [sparse/inputs/words/lower_bounds_test "below"]
/// Source:   docs/theory/bounds/sparse-inputs.md
std::vector<io::Bound> lower_bounds(const SparseOperands& operands, const io::KernelClass& kernel,
                                    std::int64_t fast_words);

/// The same of a backward pass, d_k and d_v columns of Q and V:
///   sparse_backward_compulsory  entries of Q, K and V that decide a gradient, dO, dQ, dK and dV
///   sparse_backward_once        2 (y U + v U' + W + Z d_v) / sqrt(M) - 2Z - 2M, U' = entries of K
///                               and Q over the pairs, y and v of io::best_backward_weights; over
///                               the pairs whose row of V has an entry; needs scores and dP
///                               evaluated once
///   sparse_attention_order      cited, leading order
/// Requirements and source as above.  [sparse/inputs/words/lower_bounds_test "backward"]
std::vector<io::Bound> backward_lower_bounds(const SparseOperands& operands,
                                             const io::KernelClass& kernel,
                                             std::int64_t fast_words);

}  // namespace attest::sparse
