#include "io/bounds/dense/products.hpp"

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "io/bounds/dense/forward.hpp"
#include "io/bounds/formula.hpp"
#include "io/bounds/segments.hpp"
#include "io/bounds/statement.hpp"

namespace attest::io {
namespace {

void require_at_least(const char* what, std::int64_t value, std::int64_t least) {
  if (value < least) {
    throw InvalidProblem(std::string(what) + " is " + std::to_string(value) +
                         "; it must be at least " + std::to_string(least));
  }
}

double sparse_order(const Extent& extent, const SparseInputs& inputs, std::int64_t fast_words) {
  require_at_least("nonzeros", inputs.nonzeros, 0);
  const auto nonzeros = static_cast<double>(inputs.nonzeros);
  const auto words = static_cast<double>(fast_words);
  return nonzeros *
         std::min(std::sqrt(static_cast<double>(extent.pairs) / words), nonzeros / words);
}

}  // namespace

Bound matrix_product(const ProductExtent& extent, const KernelClass& kernel,
                     std::int64_t fast_words) {
  require_at_least("rows", extent.rows, 1);
  require_at_least("columns", extent.columns, 1);
  require_at_least("depth", extent.depth, 1);
  return Statement("matrix_product", Tag::cited, "2mnk/sqrt(M) - 2M", "scores")
      .needs_class(kernel, fast_words)
      .words([&] {
        const double work = static_cast<double>(extent.rows) * static_cast<double>(extent.columns) *
                            static_cast<double>(extent.depth);
        const auto words = static_cast<double>(fast_words);
        return whole_words(rounded_down(rounded_down(2 * work / std::sqrt(words)) -
                                        2 * static_cast<double>(kernel.fast_memories()) * words));
      });
}

Bound fast_multiplication(const Extent& extent, const KernelClass& kernel,
                          std::int64_t fast_words) {
  const bool dense = extent.pairs + extent.rows_one == extent.all_pairs;
  return Statement("fast_multiplication", Tag::proved,
                   segments_formula("qk") + ", F(B) = B^2/d_k^2 + 2B", "fast-multiplication")
      .needs_class_but(kernel, "K2 K4")
      .needs("mask", "every query sees every key", dense ? "" : "some pairs are masked")
      .words([&] {
        const auto maximum = [d_k = static_cast<double>(extent.head_dim_qk)](double usable_words) {
          const double ratio = usable_words / d_k;
          return rounded_up(ratio * ratio + 2 * usable_words);
        };
        return greatest_words_of_segments(
            {static_cast<double>(extent.all_pairs), maximum, fast_words, kernel.fast_memories()});
      });
}

Bound sparse_inputs_once(const Extent& extent, const SparseInputs& inputs,
                         const KernelClass& kernel, std::int64_t fast_words) {
  require_at_least("products", inputs.products, 0);
  const auto pairs = static_cast<double>(extent.pairs);
  return Statement("sparse_inputs_once", Tag::proved, linear_formula("U + Z d_v", " - Z"),
                   "sparse-inputs")
      .needs_class(kernel, fast_words)
      .needs_chains(kernel)
      .needs_once(kernel)
      .words([&] {
        const double work =
            static_cast<double>(inputs.products) + pairs * static_cast<double>(extent.head_dim_v);
        const SegmentedWork run{rounded_down(work), product_segment_maximum, fast_words,
                                kernel.fast_memories()};
        const double words = std::max(greatest_linear_words_of_segments(run, 0),
                                      linear_words_of_segments(run, SegmentLength(2 * fast_words)));
        return whole_words(rounded_down(words - pairs));
      });
}

Bound sparse_product_order(const Extent& extent, const SparseInputs& inputs,
                           const KernelClass& kernel, std::int64_t fast_words) {
  return Statement("sparse_product_order", Tag::cited, "nnz min(sqrt(Z/M), nnz/M)", "sparse-inputs")
      .needs_class(kernel, fast_words)
      .leading([&] { return sparse_order(extent, inputs, fast_words); });
}

Bound sparse_attention_order(const AttentionEntries& entries, const KernelClass& kernel,
                             std::int64_t fast_words) {
  for (const std::int64_t count : {entries.A, entries.X, entries.AX, entries.AXA}) {
    require_at_least("entries", count, 0);
  }
  return Statement("sparse_attention_order", Tag::cited,
                   "min((Z_A^2 + Z_A Z_X)/M, (Z_A sqrt(Z_AXA) + sqrt(Z_A Z_X Z_AX))/sqrt(M))",
                   "sparse-inputs")
      .needs_class(kernel, fast_words)
      .leading([&] {
        const auto A = static_cast<double>(entries.A), X = static_cast<double>(entries.X),
                   AX = static_cast<double>(entries.AX), AXA = static_cast<double>(entries.AXA),
                   words = static_cast<double>(fast_words);
        return std::min((A * A + A * X) / words,
                        (A * std::sqrt(AXA) + std::sqrt(A * X * AX)) / std::sqrt(words));
      });
}

}  // namespace attest::io
