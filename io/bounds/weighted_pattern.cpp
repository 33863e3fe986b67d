#include "io/bounds/weighted_pattern.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "io/bounds/pattern.hpp"
#include "io/bounds/segments.hpp"
#include "io/bounds/statement.hpp"
#include "io/words.hpp"

namespace attest::io {

std::int64_t largest_class(const ClassGrid& grid) {
  return std::max(*std::max_element(grid.rows.begin(), grid.rows.end()),
                  *std::max_element(grid.keys.begin(), grid.keys.end()));
}

std::string fault_of_weights(const DenseParts& parts, std::int64_t head_dims,
                             std::int64_t fast_words) {
  constexpr std::int64_t kLeastClasses = 4, kLeastBlock = 16;
  const auto least = [&](std::int64_t largest) {
    return below("fast_words", static_cast<double>(fast_words),
                 static_cast<double>((Words(kLeastClasses) * largest * head_dims).value()));
  };
  if (std::string fault = least(kLeastBlock); !fault.empty()) return fault;
  if (!parts.grid()) {
    return "none or more than 64 classes of alike rows or keys, more than 2^26 pairs, or lengths "
           "that differ";
  }
  const std::int64_t largest = largest_class(*parts.grid());
  return largest < kLeastBlock ? "no class of alike rows or keys has 16" : least(largest);
}

std::string no_weights() {
  return "few classes or pairs of them, nothing gained by weights, or no limit proved within the "
         "steps";
}

double weight_of_pairs(const ClassGrid& grid, const PartWeights& weights) {
  double weight = 0;
  for (std::size_t i = 0; i < grid.rows.size(); ++i) {
    for (std::size_t j = 0; j < grid.keys.size(); ++j) {
      weight += static_cast<double>(weights.weight[i][j]) *
                (static_cast<double>(grid.rows[i]) * static_cast<double>(grid.keys[j]));
    }
  }
  return weight / static_cast<double>(weights.heaviest);
}

WeightedPairs weighted_pairs(const ClassGrid& grid, const PartWeights& weights) {
  const double weight = weight_of_pairs(grid, weights);
  // A part of n classes has at most (per_class + 1/(4(classes - 1))) n, with parts of classes too.
  const auto size = static_cast<double>(largest_class(grid));
  const double classes = weights.limit.costs.full;
  const double per_class =
      static_cast<double>(weights.limit.most) / (static_cast<double>(weights.heaviest) * classes) +
      0.25 / (classes - 1);
  const auto density = [=](double y) {
    return std::min(std::sqrt(y) / 2,
                    std::max(per_class * size, std::sqrt(per_class * y / classes)));
  };
  return {weight,
          PairDensity::of(density, static_cast<std::int64_t>(std::ceil(rounded_up(weight)))),
          grid.copies};
}

std::int64_t weighted_words(const WeightedPairs& pairs, const Extent& extent,
                            const KernelClass& kernel, std::int64_t fast_words) {
  const PairWork work{static_cast<double>(extent.head_dim_v),
                      static_cast<double>(extent.head_dim_qk)};
  const auto words = [&](std::int64_t copies) {
    return greatest_words_of_segments(
        {rounded_down(pairs.weight * work.columns * static_cast<double>(copies)),
         [&](double usable_words) {
           return rounded_up(usable_words * most_work_per_word(pairs.density, work, usable_words));
         },
         fast_words, kernel.fast_memories()});
  };
  return std::max(words(pairs.copies), (Words(words(1)) * pairs.copies).value());
}

Bound theorem_a_weighted(const PatternDegrees& degrees, const KernelClass& kernel,
                         std::int64_t fast_words) {
  const Extent& extent = degrees.extent;
  const DenseParts& parts = *degrees.dense_parts;
  std::string fault = fault_of_weights(parts, extent.head_dim_qk + extent.head_dim_v, fast_words);
  if (fault.empty() && !parts.weights(kForwardParts)) fault = no_weights();
  return Statement("theorem_a_weighted", Tag::proved,
                   "max_{X,Y} Y + X (h - 1), h = ceil((W d_v - F(Y))/F(M+X)) >= 1, W the weight of "
                   "all pairs",
                   "patterns")
      .needs_class(kernel, fast_words)
      .needs("parts", "blocks few and large, parts of them not all visible", fault)
      .words([&] {
        return weighted_words(weighted_pairs(*parts.grid(), *parts.weights(kForwardParts)), extent,
                              kernel, fast_words);
      });
}

}  // namespace attest::io
