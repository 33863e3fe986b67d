#include "io/bounds/weights/priced_parts.hpp"

#include <algorithm>

#include "io/machine/words.hpp"

namespace attest::io {
namespace {

constexpr int kSearchedSegments = 4;

double words_of_work(const PricedParts& parts, double usable_words) {
  double words = 0;
  for (const PricedPart& part : parts) {
    words += rounded_down(part.work * static_cast<double>(part.copies) /
                          part.work_per_word(usable_words));
  }
  return rounded_down(words);
}

}  // namespace

Memories memories_of(const KernelClass& kernel, std::int64_t fast_words) {
  return {fast_words, static_cast<double>(kernel.fast_memories())};
}

double further_segments(const PricedParts& parts, const Memories& memories, const Cut& cut) {
  const double usable_words =
      static_cast<double>(memories.words) + static_cast<double>(cut.others.transfers());
  const double left = words_of_work(parts, usable_words) -
                      rounded_up(memories.count * static_cast<double>(cut.first.transfers()));
  return left > 0 ? rounded_down(left / usable_words) : 0;
}

std::int64_t greatest_words_of_parts(const PricedParts& parts, const Memories& memories) {
  return greatest_words_of_further_segments(
      [&](const Cut& cut) { return further_segments(parts, memories, cut); }, memories.words,
      kSearchedSegments);
}

std::int64_t greatest_with_repetitions(const PricedParts& parts, const Memories& memories,
                                       double repeated_work) {
  // Tells whether the work of another evaluation costs more than the word that it creates.
  const auto repeating_costs = [&](std::int64_t transfers) {
    const auto length = static_cast<double>(transfers);
    const double usable_words = static_cast<double>(memories.words) + length;
    return std::all_of(parts.begin(), parts.end(), [&](const PricedPart& part) {
      return rounded_down(length * repeated_work) >=
             rounded_up(usable_words * part.work_per_word(usable_words));
    });
  };
  double best = 0;
  for (const std::int64_t transfers : segment_lengths()) {
    const double segments = further_segments(parts, memories, even_cut(transfers));
    if (segments <= 0) break;
    if (!repeating_costs(transfers)) continue;
    best = std::max(best, rounded_down(segments * static_cast<double>(transfers)));
  }
  return whole_words(best);
}

std::int64_t whole_or_parts(const PricedParts& parts,
                            const std::function<std::int64_t(const PricedParts&)>& greatest) {
  const std::int64_t whole = greatest(parts);
  if (parts.size() == 1 && parts.front().copies == 1) return whole;
  Words sum;
  for (const PricedPart& part : parts) {
    sum += Words(part.copies) * greatest({{part.work, 1, part.work_per_word}});
  }
  return std::max(whole, sum.value());
}

}  // namespace attest::io
