#include "io/bounds/patterns/pattern.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>

#include "io/bounds/patterns/components.hpp"
#include "io/bounds/scored_work.hpp"
#include "io/bounds/segments.hpp"
#include "io/bounds/statement.hpp"
#include "io/bounds/weights/priced_parts.hpp"
#include "io/bounds/weights/weighted_pattern.hpp"

namespace attest::io {
namespace {

constexpr char kPage[] = "patterns";

// The parts, which must outlive the result, with the multiply-adds of a pair as work.
PricedParts priced(const std::vector<PatternPart>& parts, const PairWork& work) {
  PricedParts result;
  for (const PatternPart& part : parts) {
    result.push_back({static_cast<double>(part.pairs) * work.columns, part.copies,
                      [&part, work](double usable_words) {
                        return most_work_per_word(part.density, work, usable_words);
                      }});
  }
  return result;
}

// With the multiply-adds of a score counted too. Each is asked for the same lengths again, for all
// parts and by itself, and remembers them.
PricedParts priced(const std::vector<PatternPart>& parts, const ScoredWork& work) {
  PricedParts result;
  for (const PatternPart& part : parts) {
    const auto known = std::make_shared<std::map<double, double>>();
    result.push_back({static_cast<double>(part.pairs) * work.of_pair(), part.copies,
                      [&part, work, known](double words) {
                        const auto [found, is_new] = known->try_emplace(words);
                        if (is_new) {
                          found->second =
                              rounded_up(most_scored_work(part.density, work, words) / words);
                        }
                        return found->second;
                      }});
  }
  return result;
}

PairWork scores_and_outputs(const Extent& extent) {
  return {static_cast<double>(extent.head_dim_qk) + static_cast<double>(extent.head_dim_v),
          std::numeric_limits<double>::infinity()};
}

}  // namespace

PatternParts pattern_parts(const PatternDegrees& degrees) {
  return {degrees.extent,
          parts_of_pattern<PatternPart>(
              degrees,
              [](const PatternComponent& component) {
                return PatternPart{PairDensity(component), component.pairs(), component.copies};
              },
              [](PatternPart& shared, const PatternPart& part) {
                shared.density.include(part.density);
              })};
}

double most_work_per_word(const PairDensity& density, const PairWork& work, double usable_words) {
  const auto pair_words = [&](const PairDensity::Entry& entry) {
    return std::min(entry.density, work.row_words);
  };
  // y/s and q grow with y: first come the numbers of pairs that leave words over, whose price grows
  // with y; after those that use all words come the ones that need more.
  const auto& entries = density.entries();
  auto entry = std::partition_point(
      entries.begin(), entries.end(), [&](const PairDensity::Entry& candidate) {
        return static_cast<double>(candidate.fewest) * (work.columns + pair_words(candidate)) <=
               candidate.density * usable_words;
      });
  if (entry != entries.begin()) --entry;
  double best = 0;
  for (; entry != entries.end(); ++entry) {
    const double q = pair_words(*entry);
    const double without_limit = work.columns * entry->density / (work.columns + q);
    const double within = rounded_up(entry->density) -
                          rounded_down(q * static_cast<double>(entry->fewest) / usable_words);
    if (within <= 0) break;
    best = std::max(best, std::min(without_limit, within));
  }
  return rounded_up(best);
}

Bound theorem_a_pattern(const PatternParts& pattern, const KernelClass& kernel,
                        std::int64_t fast_words) {
  return Statement(
             "theorem_a_pattern", Tag::proved,
             "max_{a,X,Y} Y + X (h - 1) + 1, h = ceil((U(M+X) - Y)/(M+X)) >= 1, U(B) = sum of Z "
             "(d_v + a d_k)/rho(B)",
             kPage)
      .needs_class(kernel, fast_words)
      .words([&] {
        const PairWork work{static_cast<double>(pattern.extent.head_dim_v),
                            static_cast<double>(pattern.extent.head_dim_qk)};
        const auto greatest_words =
            [memories = memories_of(kernel, fast_words)](const PricedParts& parts) {
              return greatest_words_of_parts(parts, memories);
            };
        std::int64_t words = whole_or_parts(priced(pattern.parts, work), greatest_words);
        for (const double score_weight : kScoreWeights) {
          const ScoredWork scored{work.columns, work.row_words, score_weight,
                                  static_cast<double>(fast_words)};
          words = std::max(words, whole_or_parts(priced(pattern.parts, scored), greatest_words));
        }
        return words;
      });
}

Bound theorem_b_pattern(const PatternParts& pattern, const KernelClass& kernel,
                        std::int64_t fast_words) {
  return Statement(
             "theorem_b_pattern", Tag::proved,
             std::string(kernel.evaluation == Evaluation::once
                             ? "max_{X,Y} Y + X (h - 1) + 1 - Z, h = ceil((U(M+X) - Y)/(M+X)) >= 1"
                             : "max_X X (U(M+X) - X)/(M+X) - Z") +
                 ", U(B) = sum of Z (d_k + d_v)/rho(B)",
             kPage)
      .needs_class(kernel, fast_words)
      .needs_chains(kernel)
      .words([&] {
        const Memories memories = memories_of(kernel, fast_words);
        const PricedParts all = priced(pattern.parts, scores_and_outputs(pattern.extent));
        const std::int64_t events = whole_or_parts(all, [&](const PricedParts& parts) {
          return kernel.evaluation == Evaluation::once
                     ? greatest_words_of_parts(parts, memories)
                     : greatest_with_repetitions(parts, memories,
                                                 static_cast<double>(pattern.extent.head_dim_qk));
        });
        return std::max<std::int64_t>(events - pattern.extent.pairs, 0);
      });
}

Bound block_sparse_flash_order(const Extent& extent, std::int64_t fast_words) {
  const auto d = static_cast<double>(std::max(extent.head_dim_qk, extent.head_dim_v));
  return Statement("block_sparse_flash_order", Tag::cited, "N d + Z d^2/M", kPage)
      .needs("range", "M >= 1", below("fast_words", static_cast<double>(fast_words), 1))
      .order_of_schedule([&] {
        return d * static_cast<double>(std::max(extent.rows, extent.keys)) +
               static_cast<double>(extent.pairs) * d * d / static_cast<double>(fast_words);
      });
}

std::vector<Bound> pattern_bounds(const PatternDegrees& degrees, const KernelClass& kernel,
                                  std::int64_t fast_words) {
  const PatternParts pattern = pattern_parts(degrees);
  std::vector<Bound> bounds{theorem_a_pattern(pattern, kernel, fast_words),
                            theorem_b_pattern(pattern, kernel, fast_words),
                            block_sparse_flash_order(degrees.extent, fast_words)};
  bounds.push_back(forward_components(degrees, kernel, fast_words));
  if (degrees.dense_parts) bounds.push_back(theorem_a_weighted(degrees, kernel, fast_words));
  return bounds;
}

}  // namespace attest::io
