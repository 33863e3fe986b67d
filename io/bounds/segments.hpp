#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <vector>

/// The counting argument that the bounds share: docs/theory/bounds/segments.md. A run is cut into a
/// first segment of Y transfers and others of X; in these at most F(fast_words + X) units of work
/// can be done, in the first, which begins with empty fast memory, at most F(Y).
namespace attest::io {

/// The length of a segment: a positive whole number of transfers (condition K5; with real X the
/// formula exceeds what is proved, docs/theory/bounds/class.md).
class SegmentLength {
 public:
  /// Requires: at least 1. Else throws InvalidProblem.
  explicit SegmentLength(std::int64_t transfers);
  template <std::floating_point Real>
  explicit SegmentLength(Real) = delete;

  std::int64_t transfers() const { return transfers_; }

 private:
  std::int64_t transfers_;
};

/// How a run is cut. First segments as long as the others are good for runs of few segments, those
/// with as many usable words as the others, M + X transfers, for runs of many.
struct Cut {
  SegmentLength first, others;  // Y and X; Y from X to fast_words + X
};

Cut even_cut(std::int64_t transfers);
Cut cut_with_long_first(std::int64_t fast_words, std::int64_t transfers);

/// Work that can be done in a segment with that many usable words: F, never less than its exact
/// value.
using SegmentMaximum = std::function<double(double usable_words)>;

/// The quantities every segment argument has.
struct SegmentedWork {
  double work = 0;                 // units of work in all, never more than the exact value
  SegmentMaximum maximum;          // increasing
  std::int64_t fast_words = 1;     // of one fast memory
  std::int64_t fast_memories = 1;  // K6
};

/// Y + X (h - 1) + 1, h = ceil((work - F(Y)) / F(fast_words + X)), if h is at least 1, else 0; with
/// F(Y) once for every fast memory; every rounding goes down.  [io/bounds/segments_test]
///
/// Requires: fast_words from 1 to 2^61, fast_memories at least 1, Y from X to fast_words + X. Else
/// throws InvalidProblem; also when the result exceeds 2^63 - 1.
std::int64_t words_of_segments(const SegmentedWork& run, const Cut& cut);

/// The greatest words_of_segments over a fixed set of cuts: lengths for up to 64 segments, and 45
/// to the octave, even or with a long first segment. Any cut is sound; what is missed is of second
/// order. Does not increase with fast_words.  [io/bounds/segments_test "exhaustive search"]
std::int64_t greatest_words_of_segments(const SegmentedWork& run);

/// Full segments that must follow the first one, as a function of the cut; any real number not
/// above their exact count. It should not increase with the lengths.
using FurtherSegments = std::function<double(const Cut&)>;

/// The same where F depends on the length: the greatest Y + X (ceil(further) - 1) + 1 with
/// further > 0, over the fixed cuts, and over all with up to `searched` further segments.
/// [io/bounds/segments_test "given segments"]
std::int64_t greatest_words_of_further_segments(const FurtherSegments& further,
                                                std::int64_t fast_words, int searched);

/// The fixed lengths, in ascending order.
const std::vector<std::int64_t>& segment_lengths();

/// Without the ceiling, real and rounded down: X (work - F(X)) / F(M + X), M = fast_words; in one
/// fast memory M + X (work - F(M)) / F(M + X) if that has work >= F(M) + F(M + X). The result
/// remains true when every unit of work may be repeated at a price, if X is at least `least_ratio`
/// times F(M + X). [io/bounds/segments_test "without the ceiling"]
///
/// Requires: a convex maximum that is 0 at 0.
double linear_words_of_segments(const SegmentedWork& run, SegmentLength length);

/// The greatest linear_words_of_segments over fixed lengths with X >= least_ratio F(fast_words +
/// X); minus infinity when no length has it.
double greatest_linear_words_of_segments(const SegmentedWork& run, double least_ratio);

/// `value` less the rounding errors of the few operations that gave it: at most 64 of relative size
/// 2^-53 each.
double rounded_down(double value);
double rounded_up(double value);

/// The whole words of a real lower bound: the next whole number above, 0 if it is negative. Throws
/// InvalidProblem when it exceeds 2^63 - 1.
std::int64_t whole_words(double value);

}  // namespace attest::io
