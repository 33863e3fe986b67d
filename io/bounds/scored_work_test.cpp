#include "io/bounds/scored_work.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <vector>

#include "core/rng.hpp"
#include "core/testing/catch.hpp"
#include "io/bounds/patterns/pattern.hpp"
#include "io/bounds/segments.hpp"
#include "io/bounds/testing/small_masks.hpp"
#include "io/bounds/testing/smallest_degrees.hpp"

namespace attest::io {
namespace {

using testing::component_of;
using testing::random_rows;

// A segment of a run, drawn at random: words, and work with scores counted.
struct Segment {
  std::int64_t usable = 0, written = 0;
  double work = 0;
};

unsigned some(Rng& rng, unsigned of) {
  return rng.between(0, 2) == 0 ? of : of & static_cast<unsigned>(rng.between(0, 255));
}

// Some pairs are formed from whole rows and keys, some have a word of their own, some leave with
// one: no more than fast memory holds and are written.
Segment random_segment(Rng& rng, const std::vector<unsigned>& rows, const ScoredWork& work) {
  const auto columns = static_cast<int>(work.columns);
  const auto row_words = static_cast<int>(work.row_words);
  const unsigned all_rows = (1u << rows.size()) - 1;
  const unsigned whole_rows = some(rng, all_rows), whole_keys = some(rng, 255u);
  const bool carries = rng.between(0, 1) == 0, leaves = rng.between(0, 1) == 0;
  Segment segment;
  segment.written = leaves ? rng.between(0, 6) : 0;
  std::int64_t places = leaves ? static_cast<std::int64_t>(work.fast_words) + segment.written : 0;
  std::vector<unsigned> used, scored;  // pairs whose weight is there, whose score counts
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const unsigned inside = (whole_rows >> i & 1u) != 0 ? rows[i] & whole_keys : 0u;
    const unsigned carried = carries ? some(rng, rows[i]) & ~inside : 0u;
    unsigned leaving = 0;
    for (int key = 0; key < 8 && places > 0; ++key) {
      if ((rows[i] & ~inside & ~carried & 1u << key) == 0) continue;
      leaving |= 1u << key;
      --places;
    }
    segment.usable += std::popcount(carried);
    used.push_back(inside | carried);
    scored.push_back(inside | carried | leaving);
  }
  // Columns of Q and K hold the whole rows, and of those that score others as well.
  const int partial = static_cast<int>(rng.between(0, row_words));
  for (int l = 0; l < row_words; ++l) {
    const unsigned q = l < partial ? some(rng, all_rows) | whole_rows : whole_rows;
    const unsigned k = l < partial ? some(rng, 255u) | whole_keys : whole_keys;
    segment.usable += std::popcount(q) + std::popcount(k);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if ((q >> i & 1u) != 0) segment.work += work.score_weight * std::popcount(scored[i] & k);
    }
  }
  for (int c = 0; c < columns; ++c) {
    const unsigned o = some(rng, all_rows), v = some(rng, 255u);
    segment.usable += std::popcount(o) + std::popcount(v);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if ((o >> i & 1u) != 0) segment.work += std::popcount(used[i] & v);
    }
  }
  return segment;
}

ScoredWork random_work(Rng& rng) {
  return {static_cast<double>(rng.between(1, 5)), static_cast<double>(rng.between(1, 6)),
          rng.uniform(), static_cast<double>(rng.between(3, 12))};
}

// The greatest share of what is allowed that random segments do.
double greatest_share(Rng& rng, const std::vector<unsigned>& rows, const ScoredWork& work,
                      const PairDensity& density) {
  double share = 0;
  for (int round = 0; round < 300; ++round) {
    const Segment segment = random_segment(rng, rows, work);
    const auto words = static_cast<double>(segment.usable + segment.written);
    if (words > 0) share = std::max(share, segment.work / most_scored_work(density, work, words));
  }
  return share;
}

TEST_CASE("no random segments do more work, scores counted", "[io][bounds]") {
  Rng rng(21);
  double greatest = 0, greatest_of_wrong = 0;
  for (int round = 0; round < 200; ++round) {
    const auto rows = random_rows(rng, rng.between(1, 8), rng.between(2, 8));
    const ScoredWork work = random_work(rng);
    const PatternComponent component = component_of(rows);
    const double share = greatest_share(rng, rows, work, PairDensity(component));
    CHECK(share <= 1);
    greatest = std::max(greatest, share);
    const PairDensity wrong(testing::with_smallest_degrees(component));
    greatest_of_wrong = std::max(greatest_of_wrong, greatest_share(rng, rows, work, wrong));
  }
  CHECK(greatest > 0.8);
  CHECK(greatest_of_wrong > 1);
}

// Searches on a grid for what the lemma allows, y pairs by y pairs.
double searched(const PairDensity& density, const ScoredWork& work, double words) {
  constexpr int kSteps = 24;
  double most = 0;
  for (int w = 0; w <= kSteps; ++w) {
    const double usable = words * w / kSteps, leaving = work.fast_words + words - usable;
    for (int y = 0; y <= static_cast<int>(words * 2); ++y) {
      const double s = density.at(std::max(y, 1)), formed = density.at(y + leaving);
      for (int inside = 0; inside <= kSteps; ++inside) {
        const double f = static_cast<double>(y) * inside / kSteps;
        const double left = usable - f * work.row_words / s - (y - f);
        if (left < 0) continue;
        // Words that are left are those of columns of V and O, or of Q and K.
        const double columns = std::min(work.columns * y, s * left);
        most = std::max({most, columns + work.score_weight * formed * f * work.row_words / s,
                         work.score_weight * formed * (f * work.row_words / s + left)});
      }
    }
  }
  return most;
}

TEST_CASE("work with scores against a search", "[io][bounds]") {
  Rng rng(22);
  double greatest = 0;
  for (int round = 0; round < 40; ++round) {
    const PairDensity density(component_of(random_rows(rng, rng.between(1, 8), 8)));
    const ScoredWork work = random_work(rng);
    const auto words = static_cast<double>(rng.between(2, 60));
    const double found = searched(density, work, words);
    const double allowed = most_scored_work(density, work, words);
    INFO(words << " words");
    CHECK(found <= allowed);
    greatest = std::max(greatest, found / allowed);
  }
  CHECK(greatest > 0.95);
}

// A run that forms 8 x 8 scores column by column, all of them kept: 8 keys, then each query.
TEST_CASE("segments that only form scores", "[io][bounds]") {
  const PairDensity density(component_of(std::vector<unsigned>(8, 255u)));
  const ScoredWork work{1, 100, 0.375, 64 + 8 + 1};
  for (const int columns : {1, 2, 4, 10}) {
    INFO(columns << " columns");
    CHECK(most_scored_work(density, work, 16.0 * columns) >= 0.375 * 64 * columns);
  }
}

// Where scores count nothing it is the lemma without them.
TEST_CASE("work of outputs alone", "[io][bounds]") {
  Rng rng(23);
  for (int round = 0; round < 100; ++round) {
    const PairDensity density(component_of(random_rows(rng, rng.between(1, 8), 8)));
    ScoredWork work = random_work(rng);
    work.score_weight = 0;
    double before = 0;
    for (double words = 1; words < 500; words *= 1.3) {
      const double most = most_scored_work(density, work, words);
      const double outputs =
          words * most_work_per_word(density, {work.columns, work.row_words}, words);
      const double all = words * density.entries().back().density;
      CHECK(std::abs(most - outputs) <= rounded_up(rounded_up(all)) - all);
      work.score_weight = 0.25;
      const double per_word = most_scored_work(density, work, words) / words;
      work.score_weight = 0;
      CHECK(rounded_up(per_word) >= before);
      before = per_word;
    }
  }
}

}  // namespace
}  // namespace attest::io
