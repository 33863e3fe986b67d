#include "io/bounds/segments.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "io/machine/words.hpp"

namespace attest::io {
namespace {

constexpr double kRoundings = 64 * (std::numeric_limits<double>::epsilon() / 2);
constexpr double kLargestCount = 9223372036854775807.0;  // 2^63 as a double: counts stay below
constexpr std::int64_t kLongest = std::int64_t{1} << 61;

void check_fast_words(std::int64_t fast_words) {
  if (fast_words < 1 || fast_words > kLongest) {
    throw InvalidProblem("fast_words is " + std::to_string(fast_words) +
                         "; it must be from 1 to 2^61");
  }
}

void check(const SegmentedWork& run) {
  check_fast_words(run.fast_words);
  if (run.fast_memories < 1) {
    throw InvalidProblem("num_blocks is " + std::to_string(run.fast_memories) +
                         "; it must be at least 1");
  }
}

double usable(const SegmentedWork& run, const Cut& cut) {
  return static_cast<double>(run.fast_words) + static_cast<double>(cut.others.transfers());
}

// Returns the work that remains after the first segments.
double remaining(const SegmentedWork& run, const Cut& cut) {
  const double most = run.maximum(static_cast<double>(cut.first.transfers()));
  return rounded_down(run.work) - rounded_up(static_cast<double>(run.fast_memories) * most);
}

// Full segments that must follow the first, never more than the exact number.
double further_segments(const SegmentedWork& run, const Cut& cut) {
  const double left = remaining(run, cut);
  return left > 0 ? rounded_down(left / run.maximum(usable(run, cut))) : 0;
}

// By how much the first segment is longer than the others.
std::int64_t longer(const Cut& cut) { return cut.first.transfers() - cut.others.transfers(); }

// The last segment has at least one transfer.
std::int64_t words_of(double further, const Cut& cut) {
  if (further <= 0) return 0;
  return (Words(whole_words(further)) * cut.others.transfers() + longer(cut) + 1).value();
}

using CutOfLength = std::function<Cut(std::int64_t)>;

// The words with the longest length that still needs so many further segments: they decrease with
// the length.
std::int64_t words_with(const FurtherSegments& further, const CutOfLength& cut, int segments) {
  const auto needs = [&](std::int64_t length) {
    return std::ceil(further(cut(length))) >= segments;
  };
  if (!needs(1)) return 0;
  std::int64_t yes = 1;
  std::int64_t no = 2;
  while (no < kLongest && needs(no)) {
    yes = no;
    no *= 2;
  }
  while (no - yes > 1) {
    const std::int64_t middle = yes + (no - yes) / 2;
    (needs(middle) ? yes : no) = middle;
  }
  return words_of(further(cut(yes)), cut(yes));
}

}  // namespace

SegmentLength::SegmentLength(std::int64_t transfers) : transfers_(transfers) {
  if (transfers < 1) {
    throw InvalidProblem("segment length is " + std::to_string(transfers) +
                         "; it must be at least 1 transfer");
  }
}

Cut even_cut(std::int64_t transfers) {
  return {SegmentLength(transfers), SegmentLength(transfers)};
}

Cut cut_with_long_first(std::int64_t fast_words, std::int64_t transfers) {
  return {SegmentLength(fast_words + transfers), SegmentLength(transfers)};
}

double rounded_down(double value) { return value - std::abs(value) * kRoundings; }
double rounded_up(double value) { return value + std::abs(value) * kRoundings; }

std::int64_t whole_words(double value) {
  if (value >= kLargestCount) {
    throw InvalidProblem("the bound exceeds 2^63 - 1 words; give a smaller problem");
  }
  return value > 0 ? static_cast<std::int64_t>(std::ceil(value)) : 0;
}

// Independent of the problem, so that the greatest value over them decreases with fast_words as
// each value does.
const std::vector<std::int64_t>& segment_lengths() {
  static const std::vector<std::int64_t> all = [] {
    std::vector<std::int64_t> result;
    for (std::int64_t length = 1; length < kLongest;
         length += std::max<std::int64_t>(length / 64, 1))
      result.push_back(length);
    return result;
  }();
  return all;
}

std::int64_t words_of_segments(const SegmentedWork& run, const Cut& cut) {
  check(run);
  if (longer(cut) < 0 || longer(cut) > run.fast_words) {
    throw InvalidProblem("the first segment is " + std::to_string(cut.first.transfers()) +
                         " transfers; it must be as long as the others, or up to " +
                         std::to_string(run.fast_words) + " longer");
  }
  return words_of(further_segments(run, cut), cut);
}

std::int64_t greatest_words_of_further_segments(const FurtherSegments& further,
                                                std::int64_t fast_words, int searched) {
  check_fast_words(fast_words);
  const auto long_first = [fast_words](std::int64_t transfers) {
    return cut_with_long_first(fast_words, transfers);
  };
  std::int64_t best = 0;
  // Tells whether more lengths are worth a look.
  const auto look_at = [&](const Cut& cut) {
    const double segments = further(cut);
    best = std::max(best, words_of(segments, cut));
    return segments > 0;
  };
  for (const std::int64_t length : segment_lengths()) {
    if (!look_at(even_cut(length))) break;
  }
  // The whole length of a long first segment is fixed: so the words decrease with fast_words, for
  // as many segments follow.
  for (const std::int64_t length : segment_lengths()) {
    if (length > fast_words && !look_at(long_first(length - fast_words))) break;
  }
  for (int segments = 1; segments <= searched; ++segments) {
    best = std::max(
        {best, words_with(further, even_cut, segments), words_with(further, long_first, segments)});
  }
  return best;
}

std::int64_t greatest_words_of_segments(const SegmentedWork& run) {
  check(run);
  return greatest_words_of_further_segments(
      [&run](const Cut& cut) { return further_segments(run, cut); }, run.fast_words, 64);
}

namespace {

// X (work - F(X)) / F(M + X).
double linear_words_of_even(const SegmentedWork& run, std::int64_t transfers) {
  const Cut cut = even_cut(transfers);
  return rounded_down(static_cast<double>(transfers) * remaining(run, cut) /
                      run.maximum(usable(run, cut)));
}

// M + X (work - F(M)) / F(M + X) in one fast memory, with work >= F(M) + F(M + X). It is true from
// F(M + X) on; with more work it decreases with M where M + X is fixed, and where X = 2M.
double linear_words_of_long_first(const SegmentedWork& run, std::int64_t transfers) {
  const auto fast_words = static_cast<double>(run.fast_words);
  const double full = run.maximum(fast_words + static_cast<double>(transfers));
  const double work = rounded_down(run.work), at_start = run.maximum(fast_words);
  if (run.fast_memories > 1 || work < rounded_up(full + at_start)) return -kLargestCount;
  const double after = rounded_down((work - at_start) / full);
  return rounded_down(fast_words + static_cast<double>(transfers) * after);
}

}  // namespace

double linear_words_of_segments(const SegmentedWork& run, SegmentLength length) {
  check(run);
  return std::max(linear_words_of_even(run, length.transfers()),
                  linear_words_of_long_first(run, length.transfers()));
}

double greatest_linear_words_of_segments(const SegmentedWork& run, double least_ratio) {
  check(run);
  double best = -std::numeric_limits<double>::infinity();
  const auto enough = [&](std::int64_t transfers) {
    const double needed = least_ratio * run.maximum(usable(run, even_cut(transfers)));
    return rounded_down(static_cast<double>(transfers)) >= rounded_up(needed);
  };
  for (const std::int64_t length : segment_lengths()) {
    if (enough(length)) best = std::max(best, linear_words_of_even(run, length));
    // Here the whole length is fixed: with it the words decrease with fast_words.
    const std::int64_t others = length - run.fast_words;
    if (others > 0 && enough(others)) {
      best = std::max(best, linear_words_of_long_first(run, others));
    }
  }
  return best;
}

}  // namespace attest::io
