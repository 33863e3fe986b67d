#include "io/bounds/weights/weighted_pattern.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "io/bounds/patterns/pattern.hpp"
#include "io/bounds/scored_work.hpp"
#include "io/bounds/segments.hpp"
#include "io/bounds/statement.hpp"
#include "io/bounds/weights/share_limits.hpp"
#include "io/machine/words.hpp"

namespace attest::io {

std::int64_t largest_class(const ClassGrid& grid) {
  return std::max(*std::max_element(grid.rows.begin(), grid.rows.end()),
                  *std::max_element(grid.keys.begin(), grid.keys.end()));
}

std::string fault_of_weights(const DenseParts& parts, const std::vector<PartCosts>& costs,
                             std::int64_t head_dims, std::int64_t fast_words) {
  constexpr std::int64_t kLeastClasses = 2, kLeastBlock = 16;
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
  if (largest < kLeastBlock) return "no class of alike rows or keys has 16";
  if (std::string fault = least(largest); !fault.empty()) return fault;
  const bool any = std::any_of(costs.begin(), costs.end(), [&](const PartCosts& one) {
    return parts.weights(one).has_value();
  });
  return any ? ""
             : "few classes or pairs of them, nothing gained by weights, or no limit proved "
               "within the steps";
}

double weight_of_pairs(const ClassGrid& grid, const PartWeights& weights) {
  double weight = 0;
  for (std::size_t i = 0; i < grid.rows.size(); ++i) {
    for (std::size_t j = 0; j < grid.keys.size(); ++j) {
      weight += static_cast<double>(weights.weight[i][j]) * static_cast<double>(grid.pairs[i][j]);
    }
  }
  return weight / static_cast<double>(weights.heaviest);
}

WeightedPairs weighted_pairs(const ClassGrid& grid, const PartWeights& weights) {
  const double weight = weight_of_pairs(grid, weights);
  const auto size = static_cast<double>(largest_class(grid));
  const auto density = [&, limits = ShareLimits(weights)](double pairs) {
    return size * limits.density(pairs / (size * size));
  };
  return {weight,
          PairDensity::of(density, static_cast<std::int64_t>(std::ceil(rounded_up(weight)))),
          grid.copies};
}

std::int64_t weighted_words(const WeightedPairs& pairs, const Extent& extent,
                            const KernelClass& kernel, std::int64_t fast_words) {
  const PairWork work{static_cast<double>(extent.head_dim_v),
                      static_cast<double>(extent.head_dim_qk)};
  // Returns the words of so many copies, from their work and what a segment does of it.
  const auto of_segments = [&](std::int64_t copies, double of_pair, const SegmentMaximum& maximum) {
    return greatest_words_of_segments(
        {rounded_down(pairs.weight * of_pair * static_cast<double>(copies)), maximum, fast_words,
         kernel.fast_memories()});
  };
  const auto words = [&](std::int64_t copies) {
    std::int64_t most = of_segments(copies, work.columns, [&](double usable_words) {
      return rounded_up(usable_words * most_work_per_word(pairs.density, work, usable_words));
    });
    for (const double score_weight : kScoreWeights) {
      const ScoredWork scored{work.columns, work.row_words, score_weight,
                              static_cast<double>(fast_words)};
      most = std::max(most, of_segments(copies, scored.of_pair(), [&](double segment_words) {
                        return most_scored_work(pairs.density, scored, segment_words);
                      }));
    }
    return most;
  };
  const std::int64_t of_one = words(1);
  return pairs.copies == 1 ? of_one
                           : std::max(words(pairs.copies), (Words(of_one) * pairs.copies).value());
}

Bound theorem_a_weighted(const PatternDegrees& degrees, const KernelClass& kernel,
                         std::int64_t fast_words) {
  const Extent& extent = degrees.extent;
  const DenseParts& parts = *degrees.dense_parts;
  const std::vector sizes{kSmallForwardParts, kForwardParts};
  return Statement(
             "theorem_a_weighted", Tag::proved,
             "max_{a,X,Y} Y + X (h - 1) + 1, h = ceil((W (d_v + a d_k) - F(Y))/F(M+X)) >= 1, W "
             "the weight of all pairs",
             "patterns")
      .needs_class(kernel, fast_words)
      .needs("parts", "blocks few and large, parts of them not all visible",
             fault_of_weights(parts, sizes, extent.head_dim_qk + extent.head_dim_v, fast_words))
      .words([&] {
        std::int64_t words = 0;
        for (const PartCosts& size : sizes) {
          if (const auto& weights = parts.weights(size)) {
            words = std::max(words, weighted_words(weighted_pairs(*parts.grid(), *weights), extent,
                                                   kernel, fast_words));
          }
        }
        return words;
      });
}

}  // namespace attest::io
