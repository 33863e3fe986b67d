#include "io/bounds/weights/pair_density.hpp"

#include <algorithm>
#include <bit>
#include <functional>

#include "core/error.hpp"
#include "core/rng.hpp"
#include "core/testing/catch.hpp"
#include "io/bounds/segments.hpp"
#include "io/bounds/testing/small_masks.hpp"
#include "io/bounds/testing/smallest_degrees.hpp"

namespace attest::io {
namespace {

// A pattern of at most 7 x 7 pairs, the keys of a row as bits, every row and key with a pair.
struct SmallPattern {
  std::vector<unsigned> rows;
  int keys = 0;

  int pairs(unsigned row_set, unsigned key_set) const {
    int sum = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if ((row_set >> i & 1u) != 0) sum += std::popcount(rows[i] & key_set);
    }
    return sum;
  }

  PatternComponent component() const { return testing::component_of(rows); }
};

SmallPattern random_pattern(Rng& rng) {
  SmallPattern pattern;
  pattern.keys = static_cast<int>(rng.between(2, 7));
  const std::int64_t percent = rng.between(10, 100);
  const std::int64_t rows = rng.between(1, 7);
  while (static_cast<std::int64_t>(pattern.rows.size()) < rows) {
    unsigned row = 0;
    for (int key = 0; key < pattern.keys; ++key) {
      if (rng.between(0, 99) < percent) row |= 1u << key;
    }
    if (std::popcount(row) >= 2) pattern.rows.push_back(row);
  }
  return pattern;
}

double twice_rounded_up(double value) { return rounded_up(rounded_up(value)); }

std::int64_t size(const std::vector<std::int64_t>& degrees) {
  return static_cast<std::int64_t>(degrees.size());
}

// The definition.
std::int64_t by_definition(const PatternComponent& component, std::int64_t rows,
                           std::int64_t keys) {
  const auto largest = [](std::vector<std::int64_t> capped, std::int64_t count, std::int64_t cap) {
    for (std::int64_t& degree : capped) degree = std::min(degree, cap);
    std::sort(capped.begin(), capped.end(), std::greater<>());
    std::int64_t sum = 0;
    for (std::int64_t i = 0; i < count; ++i) sum += capped[static_cast<std::size_t>(i)];
    return sum;
  };
  return std::min(largest(component.row_degrees, rows, keys),
                  largest(component.key_degrees, keys, rows));
}

std::int64_t most_by_definition(const PatternComponent& component, std::int64_t indices) {
  std::int64_t best = 0;
  for (std::int64_t rows = 0; rows <= std::min(indices, size(component.row_degrees)); ++rows) {
    if (indices - rows > size(component.key_degrees)) continue;
    best = std::max(best, by_definition(component, rows, indices - rows));
  }
  return best;
}

// Tells whether no set of rows and keys has more pairs than the limit.
bool limit_holds(const SmallPattern& pattern, const PatternComponent& component) {
  const DegreeLimit limit(component);
  for (unsigned row_set = 0; row_set < 1u << pattern.rows.size(); ++row_set) {
    for (unsigned key_set = 0; key_set < 1u << pattern.keys; ++key_set) {
      const std::int64_t keys =
          std::min<std::int64_t>(std::popcount(key_set), size(component.key_degrees));
      if (pattern.pairs(row_set, key_set) > limit.pairs_within(std::popcount(row_set), keys)) {
        return false;
      }
    }
  }
  return true;
}

// Finds, of all sets of rows and keys, those with the most pairs on so many diagonals.
TEST_CASE("pairs on few diagonals", "[io][bounds]") {
  constexpr int kSize = 8;
  bool reached = false;
  for (int diagonals = 1; diagonals < 2 * kSize; ++diagonals) {
    const int left = diagonals / 2;
    std::vector<std::int64_t> most(2 * kSize + 1);
    for (unsigned rows = 1; rows < 1u << kSize; ++rows) {
      for (unsigned keys = 1; keys < 1u << kSize; ++keys) {
        std::int64_t pairs = 0;
        for (int i = 0; i < kSize; ++i) {
          if ((rows >> i & 1u) == 0) continue;
          for (int j = std::max(0, i - left); j < std::min(kSize, i - left + diagonals); ++j) {
            pairs += keys >> j & 1u;
          }
        }
        // The least whole number that is no less than 2 sqrt(I J).
        const std::int64_t product = 4 * std::popcount(rows) * std::popcount(keys);
        std::int64_t indices = 1;
        while (indices * indices < product) ++indices;
        std::int64_t& so_far = most[static_cast<std::size_t>(indices)];
        so_far = std::max(so_far, pairs);
      }
    }
    for (std::size_t indices = 2; indices < most.size(); ++indices) {
      const auto limit = most_on_diagonals(static_cast<std::int64_t>(indices), diagonals);
      INFO(indices << " indices on " << diagonals << " diagonals");
      CHECK(most[indices] <= limit);
      reached = reached || (most[indices] == limit &&
                            limit < static_cast<std::int64_t>(indices * indices / 4));
    }
  }
  CHECK(reached);
  CHECK(most_on_diagonals(95, 65) == (95 * 95 - 30 * 30 + 1) / 4);
  CHECK(most_on_diagonals(95, 0) == 95 * 95 / 4);
}

TEST_CASE("any rows and keys have at most the pairs that their degrees allow", "[io][bounds]") {
  Rng rng(5);
  int caught = 0;
  for (int round = 0; round < 60; ++round) {
    const SmallPattern pattern = random_pattern(rng);
    const PatternComponent component = pattern.component();
    CHECK(limit_holds(pattern, component));
    // With the smallest degree for all, whole patterns have too many, unless they are regular.
    const PatternComponent smallest = testing::with_smallest_degrees(component);
    const bool regular = smallest.row_degrees == component.row_degrees &&
                         smallest.key_degrees == component.key_degrees;
    CHECK(limit_holds(pattern, smallest) == regular);
    if (!regular) ++caught;
  }
  CHECK(caught > 0);
}

TEST_CASE("degrees that are not in order are refused", "[io][bounds]") {
  CHECK_THROWS_AS(DegreeLimit({{1, 2}, {2, 1}, 1, {}}), InternalError);
  CHECK_THROWS_AS(DegreeLimit({{2, 1}, {1, 2}, 1, {}}), InternalError);
  CHECK_THROWS_AS(DegreeLimit({{1, -1}, {}, 1, {}}), InternalError);
}

TEST_CASE("the limit of all divisions into rows and keys", "[io][bounds]") {
  Rng rng(6);
  for (int round = 0; round < 40; ++round) {
    PatternComponent component;
    const std::int64_t rows = rng.between(1, 30), keys = rng.between(1, 30);
    for (std::int64_t i = 0; i < rows; ++i) component.row_degrees.push_back(rng.between(1, keys));
    for (std::int64_t j = 0; j < keys; ++j) component.key_degrees.push_back(rng.between(1, rows));
    std::sort(component.row_degrees.begin(), component.row_degrees.end(), std::greater<>());
    std::sort(component.key_degrees.begin(), component.key_degrees.end(), std::greater<>());
    const DegreeLimit limit(component);
    REQUIRE(limit.most_indices() == rows + keys);
    for (std::int64_t i = 0; i <= rows; ++i) {
      for (std::int64_t j = 0; j <= keys; ++j) {
        REQUIRE(limit.pairs_within(i, j) == by_definition(component, i, j));
      }
    }
    for (std::int64_t indices = 0; indices <= rows + keys; ++indices) {
      REQUIRE(limit.most_pairs(indices) == most_by_definition(component, indices));
    }
  }
}

// Each row three times and each key four times is the same as words of rows and keys.
TEST_CASE("words of rows and keys are copies of them", "[io][bounds]") {
  Rng rng(7);
  for (int round = 0; round < 20; ++round) {
    const PatternComponent component = random_pattern(rng).component();
    PatternComponent copies;
    for (const std::int64_t degree : component.row_degrees) {
      copies.row_degrees.insert(copies.row_degrees.end(), 3, 4 * degree);
    }
    for (const std::int64_t degree : component.key_degrees) {
      copies.key_degrees.insert(copies.key_degrees.end(), 4, 3 * degree);
    }
    const DegreeLimit words(component, {3, 4}), limit(copies);
    REQUIRE(words.most_indices() == limit.most_indices());
    for (std::int64_t i = 0; i <= size(copies.row_degrees); ++i) {
      for (std::int64_t j = 0; j <= size(copies.key_degrees); ++j) {
        REQUIRE(words.pairs_within(i, j) == limit.pairs_within(i, j));
      }
    }
    for (std::int64_t indices = 0; indices <= words.most_indices(); ++indices) {
      REQUIRE(words.most_pairs(indices) == limit.most_pairs(indices));
    }
  }
  CHECK_THROWS_AS(DegreeLimit({{2}, {1, 1}, 1, {}}, {std::int64_t{1} << 31, std::int64_t{1} << 31}),
                  InvalidProblem);
}

TEST_CASE("the density of few pairs", "[io][bounds]") {
  // A full square: y pairs are densest in a square of their own, and 16 x 16 have 8 for each index.
  PatternComponent square;
  square.row_degrees = square.key_degrees = std::vector<std::int64_t>(16, 16);
  const PairDensity full(square);
  REQUIRE(full.entries().size() == 256);
  CHECK(full.entries().front().fewest == 1);
  for (const auto& [pairs, density] : std::vector<std::pair<std::size_t, double>>{
           {1, 1. / 2}, {2, 2. / 3}, {4, 1.}, {100, 5.}, {256, 8.}}) {
    CHECK(full.entries()[pairs - 1].density >= density);
    CHECK(full.entries()[pairs - 1].density <= twice_rounded_up(density));
  }
  // Against the definition, for every number of pairs.
  Rng rng(7);
  for (int round = 0; round < 40; ++round) {
    const SmallPattern pattern = random_pattern(rng);
    const PatternComponent component = pattern.component();
    const PairDensity density(component);
    REQUIRE(static_cast<std::int64_t>(density.entries().size()) == component.pairs());
    for (std::int64_t pairs = 1; pairs <= component.pairs(); ++pairs) {
      double best = 0;
      for (std::int64_t n = 1; n <= DegreeLimit(component).most_indices(); ++n) {
        const std::int64_t counted = std::min(pairs, most_by_definition(component, n));
        best = std::max(best, static_cast<double>(counted) / static_cast<double>(n));
      }
      const PairDensity::Entry& entry = density.entries()[static_cast<std::size_t>(pairs - 1)];
      CHECK(density.at(static_cast<double>(pairs)) == entry.density);
      CHECK(entry.fewest == pairs);
      CHECK(entry.density >= best);
      CHECK(entry.density <= twice_rounded_up(best));
    }
  }
}

TEST_CASE("the grid of a large pattern goes outward", "[io][bounds]") {
  PatternComponent component;
  component.row_degrees = component.key_degrees = std::vector<std::int64_t>(300, 200);
  const DegreeLimit limit(component);
  const PairDensity density(component);
  CHECK(density.entries().size() < 6000);
  double before = 0;
  for (std::size_t index = 0; index < density.entries().size(); ++index) {
    const PairDensity::Entry& entry = density.entries()[index];
    CHECK(entry.density >= before);
    before = entry.density;
    const std::int64_t last = index + 1 < density.entries().size()
                                  ? density.entries()[index + 1].fewest - 1
                                  : component.pairs();
    double best = 0;
    for (std::int64_t n = 2; n <= limit.most_indices(); n += 7) {
      const std::int64_t counted = std::min(last, limit.most_pairs(n));
      best = std::max(best, static_cast<double>(counted) / static_cast<double>(n));
    }
    REQUIRE(entry.density >= best);
  }
  // The densest are all 300 rows and keys, with 200 pairs each: 100 pairs to a row or key.
  CHECK(before >= 100);
  CHECK(before <= twice_rounded_up(100));
}

TEST_CASE("of two patterns the denser one counts", "[io][bounds]") {
  PatternComponent wide, narrow;
  wide.row_degrees = std::vector<std::int64_t>(2, 40);
  wide.key_degrees = std::vector<std::int64_t>(40, 2);
  narrow.row_degrees = narrow.key_degrees = std::vector<std::int64_t>(6, 6);
  const PairDensity one(wide), other(narrow);
  for (const bool swapped : {false, true}) {
    PairDensity both = swapped ? other : one;
    both.include(swapped ? one : other);
    REQUIRE(both.entries().size() == 80);
    for (std::size_t index = 0; index < 80; ++index) {
      const auto at = [&](const PairDensity& density) {
        return density.entries()[std::min(index, density.entries().size() - 1)].density;
      };
      CHECK(both.entries()[index].density == std::max(at(one), at(other)));
      CHECK(both.entries()[index].fewest == static_cast<std::int64_t>(index) + 1);
    }
  }
}

}  // namespace
}  // namespace attest::io
