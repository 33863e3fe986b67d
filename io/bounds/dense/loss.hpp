#pragma once

#include <vector>

#include "io/bounds/bound.hpp"

/// Lower bounds for the gradient of the attention loss (Li et al. 2024), dL/dX from A1, A2, A3, E
/// of n x d and X, Y of d x d, n >= 2 (with one key the gradient is zero). M is fast_words.
/// Requirements and guarantees as in io/bounds/dense/forward.hpp; K3 speaks of all six inputs.
namespace attest::io {

struct LossExtent {
  std::int64_t rows = 2;      // n
  std::int64_t head_dim = 1;  // d
};

/// 4nd + 2d^2 read, d^2 written; for storage shared in any way the writes only. Proved:
/// docs/theory/bounds/compulsory.md. Needs K1, K2.
Bound compulsory_loss(const LossExtent& extent, const KernelClass& kernel);

/// 8 n^2 d^2 / M - O(nd) - M: not a lower bound, a figure checked against traced simulations, which
/// loss_large_direct meets for d^2 << M << nd. docs/theory/bounds/loss.md
Bound loss_large(const LossExtent& extent, const KernelClass& kernel, std::int64_t fast_words);

/// (4a - 1) n^2 - 2M - 3nd, a = d/sqrt(M). Proved for kernels that evaluate QX, h and every score
/// once: docs/theory/bounds/loss.md. Needs K1 to K6.
Bound loss_small_once(const LossExtent& extent, const KernelClass& kernel, std::int64_t fast_words);

/// All of the above.
std::vector<Bound> loss_bounds(const LossExtent& extent, const KernelClass& kernel,
                               std::int64_t fast_words);

}  // namespace attest::io
