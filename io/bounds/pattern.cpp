#include "io/bounds/pattern.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "io/bounds/segments.hpp"
#include "io/bounds/statement.hpp"
#include "io/words.hpp"

namespace attest::io {
namespace {

constexpr std::size_t kMostParts = 16;
constexpr int kSearchedSegments = 4;
constexpr char kPage[] = "patterns";

struct Setting {
  PairWork work;
  std::int64_t fast_words;
  double fast_memories;

  double usable(SegmentLength length) const {
    return static_cast<double>(fast_words) + static_cast<double>(length.transfers());
  }
};

using Parts = std::vector<PatternPart>;

// U(B): words that all the work costs when every word does as much as the best segment allows.
double words_of_work(const Parts& parts, const PairWork& work, double usable_words) {
  double words = 0;
  for (const PatternPart& part : parts) {
    words += rounded_down(static_cast<double>(part.pairs) * static_cast<double>(part.copies) *
                          work.columns / most_work_per_word(part.density, work, usable_words));
  }
  return rounded_down(words);
}

// (U(M+X) - pX) / (M+X)
double further_segments(const Parts& parts, const Setting& setting, SegmentLength length) {
  const double first = rounded_up(setting.fast_memories * static_cast<double>(length.transfers()));
  const double usable_words = setting.usable(length);
  const double left = words_of_work(parts, setting.work, usable_words) - first;
  return left > 0 ? rounded_down(left / usable_words) : 0;
}

std::int64_t greatest_with_ceiling(const Parts& parts, const Setting& setting) {
  return greatest_words_of_further_segments(
      [&](SegmentLength length) { return further_segments(parts, setting, length); },
      kSearchedSegments);
}

// Whether another evaluation of a score, d_k multiply-adds, costs more words than the one that the
// argument does not pay for.
bool repeating_costs(const Parts& parts, const Setting& setting, std::int64_t head_dim_qk,
                     SegmentLength length) {
  const double usable_words = setting.usable(length);
  const double paid =
      rounded_down(static_cast<double>(length.transfers()) * static_cast<double>(head_dim_qk));
  return std::all_of(parts.begin(), parts.end(), [&](const PatternPart& part) {
    return paid >=
           rounded_up(usable_words * most_work_per_word(part.density, setting.work, usable_words));
  });
}

std::int64_t greatest_with_repeated_scores(const Parts& parts, const Setting& setting,
                                           std::int64_t head_dim_qk) {
  double best = 0;
  for (const std::int64_t transfers : segment_lengths()) {
    const SegmentLength length(transfers);
    const double segments = further_segments(parts, setting, length);
    if (segments <= 0) break;
    if (!repeating_costs(parts, setting, head_dim_qk, length)) continue;
    best = std::max(best, rounded_down(segments * static_cast<double>(transfers)));
  }
  return whole_words(best);
}

// The words of a run, or of its parts one by one: restricted to the words of a part, a run is one
// for that part alone.
template <class Greatest>
std::int64_t whole_or_parts(const Parts& parts, const Greatest& greatest) {
  const std::int64_t whole = greatest(parts);
  if (parts.size() == 1 && parts.front().copies == 1) return whole;
  Words sum;
  for (const PatternPart& part : parts) {
    sum += Words(part.copies) * greatest(Parts{{part.density, part.pairs, 1}});
  }
  return std::max(whole, sum.value());
}

PairWork scores_and_outputs(const Extent& extent) {
  return {static_cast<double>(extent.head_dim_qk) + static_cast<double>(extent.head_dim_v),
          std::numeric_limits<double>::infinity()};
}

}  // namespace

PatternParts pattern_parts(const PatternDegrees& degrees) {
  PatternParts pattern;
  pattern.extent = degrees.extent;
  for (const PatternComponent& component : degrees.components) {
    const PairDensity density(component);
    if (pattern.parts.size() < kMostParts) {
      pattern.parts.push_back({density, component.pairs(), component.copies});
    } else {
      PatternPart& shared = pattern.parts.back();
      shared.density.include(density);
      shared.pairs =
          (Words(shared.pairs) * shared.copies + Words(component.pairs()) * component.copies)
              .value();
      shared.copies = 1;
    }
  }
  return pattern;
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
  return Statement("theorem_a_pattern", Tag::proved,
                   "max_X X ceil((U(M+X) - X)/(M+X)), U(B) = sum of Z d_v/rho(B)", kPage)
      .needs_class(kernel, fast_words)
      .words([&] {
        const Setting setting{{static_cast<double>(pattern.extent.head_dim_v),
                               static_cast<double>(pattern.extent.head_dim_qk)},
                              fast_words,
                              static_cast<double>(kernel.fast_memories())};
        return whole_or_parts(pattern.parts, [&](const Parts& parts) {
          return greatest_with_ceiling(parts, setting);
        });
      });
}

Bound theorem_b_pattern(const PatternParts& pattern, const KernelClass& kernel,
                        std::int64_t fast_words) {
  return Statement("theorem_b_pattern", Tag::proved,
                   "max_X X (U(M+X) - X)/(M+X) - Z, U(B) = sum of Z (d_k + d_v)/rho(B)", kPage)
      .needs_class(kernel, fast_words)
      .needs_chains(kernel)
      .words([&] {
        const Setting setting{scores_and_outputs(pattern.extent), fast_words,
                              static_cast<double>(kernel.fast_memories())};
        const std::int64_t events = whole_or_parts(pattern.parts, [&](const Parts& parts) {
          return kernel.evaluation == Evaluation::once
                     ? greatest_with_ceiling(parts, setting)
                     : greatest_with_repeated_scores(parts, setting, pattern.extent.head_dim_qk);
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
  return {theorem_a_pattern(pattern, kernel, fast_words),
          theorem_b_pattern(pattern, kernel, fast_words),
          block_sparse_flash_order(degrees.extent, fast_words)};
}

}  // namespace attest::io
