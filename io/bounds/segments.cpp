#include "io/bounds/segments.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "io/words.hpp"

namespace attest::io {
namespace {

constexpr double kRoundings = 64 * (std::numeric_limits<double>::epsilon() / 2);
constexpr double kLargestCount = 9223372036854775807.0;  // 2^63 as a double: counts stay below
constexpr std::int64_t kLongest = std::int64_t{1} << 61;

void check(const SegmentedWork& run) {
  if (run.fast_words < 1 || run.fast_words > kLongest) {
    throw InvalidProblem("fast_words is " + std::to_string(run.fast_words) +
                         "; it must be from 1 to 2^61");
  }
  if (run.fast_memories < 1) {
    throw InvalidProblem("num_blocks is " + std::to_string(run.fast_memories) +
                         "; it must be at least 1");
  }
}

double usable(const SegmentedWork& run, std::int64_t length) {
  return static_cast<double>(run.fast_words) + static_cast<double>(length);
}

// What remains to be done after the first segments.
double remaining(const SegmentedWork& run, std::int64_t length) {
  return rounded_down(run.work) - rounded_up(static_cast<double>(run.fast_memories) *
                                             run.maximum(static_cast<double>(length)));
}

// Full segments that must follow the first, never more than the exact number.
double further_segments(const SegmentedWork& run, SegmentLength segment) {
  const std::int64_t length = segment.transfers();
  const double left = remaining(run, length);
  if (left <= 0) return 0;
  return rounded_down(left / run.maximum(usable(run, length)));
}

// The last segment has at least one transfer more.
std::int64_t words_of(double further, SegmentLength length) {
  if (further <= 0) return 0;
  return (Words(whole_words(further)) * length.transfers() + 1).value();
}

// The words with the longest length that still needs so many further segments: they decrease with
// the length.
std::int64_t words_with(const FurtherSegments& further, int segments) {
  const auto needs = [&](std::int64_t length) {
    return std::ceil(further(SegmentLength(length))) >= segments;
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
  return words_of(further(SegmentLength(yes)), SegmentLength(yes));
}

}  // namespace

SegmentLength::SegmentLength(std::int64_t transfers) : transfers_(transfers) {
  if (transfers < 1) {
    throw InvalidProblem("segment length is " + std::to_string(transfers) +
                         "; it must be at least 1 transfer");
  }
}

double rounded_down(double value) { return value - std::abs(value) * kRoundings; }
double rounded_up(double value) { return value + std::abs(value) * kRoundings; }

std::int64_t whole_words(double value) {
  if (value >= kLargestCount) {
    throw InvalidProblem("the bound exceeds 2^63 - 1 words; give a smaller problem");
  }
  return value > 0 ? static_cast<std::int64_t>(std::ceil(value)) : 0;
}

std::int64_t words_of_segments(const SegmentedWork& run, SegmentLength length) {
  check(run);
  return words_of(further_segments(run, length), length);
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

std::int64_t greatest_words_of_further_segments(const FurtherSegments& further, int searched) {
  std::int64_t best = 0;
  for (const std::int64_t transfers : segment_lengths()) {
    const SegmentLength length(transfers);
    const double segments = further(length);
    if (segments <= 0) break;
    best = std::max(best, words_of(segments, length));
  }
  for (int segments = 1; segments <= searched; ++segments) {
    best = std::max(best, words_with(further, segments));
  }
  return best;
}

std::int64_t greatest_words_of_segments(const SegmentedWork& run) {
  check(run);
  return greatest_words_of_further_segments(
      [&run](SegmentLength length) { return further_segments(run, length); }, 64);
}

double linear_words_of_segments(const SegmentedWork& run, SegmentLength length) {
  check(run);
  const std::int64_t transfers = length.transfers();
  const double left = remaining(run, transfers);
  const double words = static_cast<double>(transfers) * left / run.maximum(usable(run, transfers));
  return rounded_down(words);
}

double greatest_linear_words_of_segments(const SegmentedWork& run, double least_ratio) {
  check(run);
  double best = -std::numeric_limits<double>::infinity();
  for (const std::int64_t length : segment_lengths()) {
    const double needed = least_ratio * run.maximum(usable(run, length));
    if (rounded_down(static_cast<double>(length)) < rounded_up(needed)) continue;
    best = std::max(best, linear_words_of_segments(run, SegmentLength(length)));
  }
  return best;
}

}  // namespace attest::io
