#include "io/bounds/segments.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "core/error.hpp"
#include "core/testing/catch.hpp"
#include "io/bounds/dense/forward.hpp"

namespace attest::io {
namespace {

static_assert(std::is_constructible_v<SegmentLength, std::int64_t>);
static_assert(!std::is_constructible_v<SegmentLength, double>, "K5: whole transfers only");
static_assert(!std::is_constructible_v<SegmentLength, float>);

SegmentedWork forward_run(std::int64_t pairs, std::int64_t d_k, std::int64_t d_v,
                          std::int64_t fast_words) {
  return {static_cast<double>(pairs * d_v),
          [=](double usable) { return forward_segment_maximum(usable, d_k, d_v); }, fast_words, 1};
}

TEST_CASE("segments of a linear maximum are counted exactly", "[io][bounds]") {
  // One unit of work per usable word: 3 usable at first, then 5 + 3.
  const SegmentedWork run{100, [](double usable) { return usable; }, 5, 1};
  CHECK(words_of_segments(run, even_cut(3)) == 13 * 3 + 1);  // ceil(97 / 8) = 13
  CHECK(words_of_segments(run, even_cut(100)) == 0);
  CHECK(words_of_segments(run, even_cut(99)) == 100);
  CHECK(words_of_segments({96 + 3, run.maximum, 5, 1}, even_cut(3)) == 12 * 3 + 1);
  // Two fast memories that communicate start with three words each.
  CHECK(words_of_segments({100, run.maximum, 5, 2}, even_cut(3)) == 12 * 3 + 1);
}

TEST_CASE("a first segment may use as many words as the others", "[io][bounds]") {
  const SegmentedWork run{100, [](double usable) { return usable; }, 5, 1};
  // 8 usable words in the first, of 8 transfers; ceil(92 / 8) = 12.
  CHECK(words_of_segments(run, cut_with_long_first(5, 3)) == 8 - 3 + 12 * 3 + 1);
  CHECK(words_of_segments(run, cut_with_long_first(5, 95)) == 0);
  CHECK(words_of_segments(run, cut_with_long_first(5, 94)) == 100);
  CHECK(words_of_segments({100, run.maximum, 5, 2}, cut_with_long_first(5, 3)) ==
        8 - 3 + 11 * 3 + 1);
  // With many segments the greatest bound spares what the first one could do.
  CHECK(greatest_words_of_segments(run) > words_of_segments(run, even_cut(5)));
}

TEST_CASE("bounds by segments do not increase with fast memory", "[io][bounds]") {
  for (const std::int64_t pairs : {9, 60, 1000, 100'000}) {
    std::int64_t before = std::numeric_limits<std::int64_t>::max();
    for (std::int64_t fast_words = 1; fast_words <= 400; ++fast_words) {
      const std::int64_t words = greatest_words_of_segments(forward_run(pairs, 5, 7, fast_words));
      INFO(pairs << " pairs, " << fast_words << " words");
      CHECK(words <= before);
      before = words;
    }
  }
}

TEST_CASE("the greatest over lengths agrees with exhaustive search", "[io][bounds]") {
  for (std::int64_t pairs : {1, 4, 9, 25, 60, 144, 1000}) {
    for (std::int64_t fast_words : {1, 2, 3, 7, 20, 64}) {
      for (std::int64_t d : {1, 2, 5}) {
        const SegmentedWork run = forward_run(pairs, d, 2 * d - 1, fast_words);
        std::int64_t best = 0;
        for (std::int64_t length = 1; length <= 4 * pairs * d; ++length) {
          best = std::max({best, words_of_segments(run, even_cut(length)),
                           words_of_segments(run, cut_with_long_first(fast_words, length))});
        }
        INFO(pairs << " pairs, " << fast_words << " words, d " << d);
        const std::int64_t found = greatest_words_of_segments(run);
        CHECK(found <= best);
        CHECK(found >= best - best / 64);  // the spacing of the lengths beyond 64 segments
      }
    }
  }
}

TEST_CASE("given segments are those of the same maximum", "[io][bounds]") {
  const SegmentedWork run = forward_run(1000, 5, 7, 20);
  const auto further = [&run](const Cut& cut) {
    const auto first = static_cast<double>(cut.first.transfers());
    const auto others = static_cast<double>(cut.others.transfers());
    return rounded_down((run.work - run.maximum(first)) / run.maximum(20 + others));
  };
  CHECK(greatest_words_of_further_segments(further, 20, 64) == greatest_words_of_segments(run));
  CHECK(greatest_words_of_further_segments(further, 20, 4) <= greatest_words_of_segments(run));
  CHECK(greatest_words_of_further_segments([](const Cut&) { return 0.; }, 20, 64) == 0);
}

// The least events of any run in one fast memory: a first segment of M + X, others of X and a last
// one of x do at most F(M + X) each and F(M + x).
TEST_CASE("segments without the ceiling are no more than exact ones", "[io][bounds]") {
  int more_than_even = 0, wrong_above = 0;
  for (const double work : {30., 100., 400., 3000., 40000.}) {
    for (const std::int64_t fast_words : {3, 8, 30, 100}) {
      for (const std::int64_t transfers : {2, 6, 16, 60, 200, 900}) {
        const SegmentedWork run{work, product_segment_maximum, fast_words, 1};
        const auto does = [&](std::int64_t events) {
          const std::int64_t first = std::min(events, fast_words + transfers);
          const std::int64_t full = (events - first) / transfers;
          const std::int64_t last = (events - first) % transfers;
          return product_segment_maximum(static_cast<double>(first)) +
                 static_cast<double>(full) *
                     product_segment_maximum(static_cast<double>(fast_words + transfers)) +
                 (last > 0 ? product_segment_maximum(static_cast<double>(fast_words + last)) : 0);
        };
        std::int64_t least = 0;
        while (does(least) < work) ++least;
        const double linear = linear_words_of_segments(run, SegmentLength(transfers));
        INFO(work << " work, M " << fast_words << ", X " << transfers << ": " << linear << " of "
                  << least);
        CHECK(linear <= static_cast<double>(least));
        const double full = product_segment_maximum(static_cast<double>(fast_words + transfers));
        const double even = static_cast<double>(transfers) *
                            (work - product_segment_maximum(static_cast<double>(transfers))) / full;
        if (linear > even + 1) ++more_than_even;
        // The work that fast memory does at the start not taken off.
        const double wrong =
            static_cast<double>(fast_words) + static_cast<double>(transfers) * work / full;
        if (wrong > static_cast<double>(least)) ++wrong_above;
      }
    }
  }
  CHECK(more_than_even > 10);
  CHECK(wrong_above > 10);
  // Several memories begin empty, each.
  const SegmentedWork one{40000, product_segment_maximum, 100, 1};
  const SegmentedWork two{40000, product_segment_maximum, 100, 2};
  CHECK(linear_words_of_segments(two, SegmentLength(200)) <
        linear_words_of_segments(one, SegmentLength(200)));
}

TEST_CASE("lengths that repeated work would undercut are left out", "[io][bounds]") {
  // X d_k >= F(M + X) has no solution above M = 4 d_k^2.
  const double d_k = 8;
  SegmentedWork run{1e6, product_segment_maximum, 200, 1};
  CHECK(greatest_linear_words_of_segments(run, 1 / d_k) > 0);
  run.fast_words = 300;
  CHECK(greatest_linear_words_of_segments(run, 1 / d_k) ==
        -std::numeric_limits<double>::infinity());
  CHECK(greatest_linear_words_of_segments(run, 0) > 0);
}

TEST_CASE("impossible segments are refused", "[io][bounds]") {
  CHECK_THROWS_AS(SegmentLength(0), InvalidProblem);
  const SegmentMaximum one = [](double) { return 1.0; };
  CHECK_THROWS_AS(greatest_words_of_segments({1, one, 0, 1}), InvalidProblem);
  CHECK_THROWS_AS(greatest_words_of_segments({1, one, 1, 0}), InvalidProblem);
  CHECK_THROWS_AS(greatest_words_of_segments({1e30, one, 1, 1}), InvalidProblem);
  // A first segment shorter than the others, or with more usable words.
  const SegmentedWork run{9, one, 5, 1};
  CHECK_THROWS_AS(words_of_segments(run, {SegmentLength(2), SegmentLength(3)}), InvalidProblem);
  CHECK_THROWS_AS(words_of_segments(run, {SegmentLength(9), SegmentLength(3)}), InvalidProblem);
  const FurtherSegments further = [](const Cut&) { return 1.0; };
  for (const std::int64_t fast_words :
       {std::int64_t{0}, std::numeric_limits<std::int64_t>::max()}) {
    CHECK_THROWS_AS(greatest_words_of_further_segments(further, fast_words, 4), InvalidProblem);
  }
  CHECK_THROWS_AS(whole_words(std::ldexp(1.0, 63)), InvalidProblem);
  CHECK(whole_words(-3.5) == 0);
  CHECK(whole_words(3.01) == 4);
  CHECK(whole_words(rounded_down(3)) == 3);
}

}  // namespace
}  // namespace attest::io
