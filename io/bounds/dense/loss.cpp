#include "io/bounds/dense/loss.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "io/bounds/dense/forward.hpp"
#include "io/bounds/formula.hpp"
#include "io/bounds/segments.hpp"
#include "io/bounds/statement.hpp"
#include "io/machine/words.hpp"

namespace attest::io {
namespace {

void require_sizes(const LossExtent& extent) {
  if (extent.rows < 1 || extent.head_dim < 1) {
    throw InvalidProblem("loss gradient: n is " + std::to_string(extent.rows) + " and d " +
                         std::to_string(extent.head_dim) + "; both must be at least 1");
  }
}

std::string one_key(const LossExtent& extent) {
  return extent.rows >= 2 ? "" : "with one key every weight is 1 and the gradient zero";
}

}  // namespace

Bound compulsory_loss(const LossExtent& extent, const KernelClass& kernel) {
  require_sizes(extent);
  return Statement("compulsory_loss", Tag::proved,
                   kernel.storage == Storage::disjoint ? "4nd + 3d^2" : "d^2", "compulsory")
      .needs_class_but(kernel, "K3 K4 K5 K6")
      .needs("K4", "n >= 2", one_key(extent))
      .words([&] {
        const Words square = Words(extent.head_dim) * extent.head_dim;
        if (kernel.storage != Storage::disjoint) return square.value();
        return (Words(4) * extent.rows * extent.head_dim + Words(3) * square).value();
      });
}

Bound loss_large(const LossExtent& extent, const KernelClass& kernel, std::int64_t fast_words) {
  require_sizes(extent);
  return Statement("loss_large", Tag::verified, "8n^2 d^2/M to leading order, O(nd) + M less",
                   "loss")
      .needs_class(kernel, fast_words)
      .needs("K4", "n >= 2", one_key(extent))
      .leading([&] {
        const auto n = static_cast<double>(extent.rows);
        const auto d = static_cast<double>(extent.head_dim);
        return 8 * n * n * d * d / static_cast<double>(fast_words);
      });
}

Bound loss_small_once(const LossExtent& extent, const KernelClass& kernel,
                      std::int64_t fast_words) {
  require_sizes(extent);
  return Statement("loss_small_once", Tag::proved, linear_formula("2n^2 d", " - n^2 - 3nd"), "loss")
      .needs_class(kernel, fast_words)
      .needs("K4", "n >= 2", one_key(extent))
      .needs_chains(kernel)
      .needs_once(kernel)
      .words([&] {
        const auto n = static_cast<double>(extent.rows);
        const auto d = static_cast<double>(extent.head_dim);
        const SegmentedWork run{2 * n * n * d, product_segment_maximum, fast_words,
                                kernel.fast_memories()};
        const double words = std::max(greatest_linear_words_of_segments(run, 0),
                                      linear_words_of_segments(run, SegmentLength(2 * fast_words)));
        return whole_words(rounded_down(words - rounded_up(n * n + 3 * n * d)));
      });
}

std::vector<Bound> loss_bounds(const LossExtent& extent, const KernelClass& kernel,
                               std::int64_t fast_words) {
  return {compulsory_loss(extent, kernel), loss_large(extent, kernel, fast_words),
          loss_small_once(extent, kernel, fast_words)};
}

}  // namespace attest::io
