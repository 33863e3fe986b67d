#include "io/bounds/weights/weighted_backward.hpp"

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "io/bounds/segments.hpp"
#include "io/bounds/statement.hpp"
#include "io/bounds/weights/weighted_pattern.hpp"
#include "io/machine/words.hpp"

namespace attest::io {
namespace {

constexpr int kCarriedSteps = 512;

}  // namespace

WeightedProducts::WeightedProducts(const ClassGrid& grid, const PartWeights& weights,
                                   std::int64_t head_dim)
    : limits_(weights),
      class_size_(static_cast<double>(largest_class(grid))),
      head_dim_(static_cast<double>(head_dim)),
      all_work_(rounded_down(12 * weight_of_pairs(grid, weights))) {
  if (weights.limits.front().costs != kBackwardParts) throw InternalError("parts of such costs");
}

double WeightedProducts::most_products(double words) const {
  // A row class costs 3 and a key class 4, in units of d words of each of its members.
  return rounded_up(12 * class_size_ * class_size_ *
                    limits_.most(rounded_up(words / (head_dim_ * class_size_))));
}

double WeightedProducts::most_work(double usable_words) const {
  double most = 0;
  for (int step = 0; step < kCarriedSteps; ++step) {
    // Work grows with both of its arguments.
    const double products =
        most_products(rounded_up(usable_words * (kCarriedSteps - step) / kCarriedSteps));
    const double carried = usable_words * (step + 1) / kCarriedSteps;
    most = std::max(
        most, products >= 4 * carried ? products + 4 * carried : 4 * std::sqrt(carried * products));
  }
  return std::min(rounded_up(most), rounded_up(all_work_));
}

std::int64_t weighted_backward_words(const WeightedProducts& products, std::int64_t copies,
                                     const KernelClass& kernel, std::int64_t fast_words) {
  const std::int64_t words = greatest_words_of_segments(
      {products.all_work(), [&](double usable_words) { return products.most_work(usable_words); },
       fast_words, kernel.fast_memories()});
  return (Words(words) * copies).value();
}

Bound theorem_c_weighted(const PatternDegrees& degrees, const KernelClass& kernel,
                         std::int64_t fast_words) {
  const Extent& extent = degrees.extent;
  const DenseParts& parts = *degrees.dense_parts;
  return Statement(
             "theorem_c_weighted", Tag::proved,
             "max_{X,Y} Y + X (h - 1) + 1, h = ceil((12W - F(Y))/F(M+X)) >= 1, W the weight of "
             "all pairs",
             "patterns")
      .needs_class(kernel, fast_words)
      .needs("parts", "blocks few and large, parts of them not all visible",
             fault_of_weights(parts, {kBackwardParts}, extent.head_dim_qk + extent.head_dim_v,
                              fast_words))
      .of_events()
      .words([&] {
        const WeightedProducts products(*parts.grid(), *parts.weights(kBackwardParts),
                                        std::min(extent.head_dim_qk, extent.head_dim_v));
        return weighted_backward_words(products, parts.grid()->copies, kernel, fast_words);
      });
}

}  // namespace attest::io
