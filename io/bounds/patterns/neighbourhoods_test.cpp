#include "io/bounds/patterns/neighbourhoods.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "core/error.hpp"
#include "core/rng.hpp"
#include "core/testing/catch.hpp"
#include "io/bounds/segments.hpp"
#include "io/bounds/weights/pair_density.hpp"

namespace attest::io {
namespace {

PairLists random_pairs(Rng& rng, std::int64_t rows, std::int64_t keys, std::int64_t percent) {
  PairLists pairs;
  pairs.keys = keys;
  for (std::int64_t i = 0; i < rows; ++i) {
    auto& row = pairs.rows.emplace_back();
    for (std::int32_t key = 0; key < keys; ++key) {
      if (rng.between(0, 99) < percent) row.push_back(key);
    }
  }
  return pairs;
}

// Tells whether every set of rows and keys meets a condition on its pairs, rows and keys.
template <class Condition>
bool for_all_sets(const PairLists& pairs, const Condition& condition) {
  for (unsigned row_set = 1; row_set < 1u << pairs.rows.size(); ++row_set) {
    for (unsigned key_set = 1; key_set < 1u << pairs.keys; ++key_set) {
      int within = 0;
      for (std::size_t i = 0; i < pairs.rows.size(); ++i) {
        if ((row_set >> i & 1u) == 0) continue;
        for (const std::int32_t key : pairs.rows[i])
          within += static_cast<int>(key_set >> key & 1u);
      }
      if (!condition(within, std::popcount(row_set), std::popcount(key_set))) return false;
    }
  }
  return true;
}

// Tells whether every set has at most the pairs that mean and spread allow.
bool holds(const PairLists& pairs, const Neighbourhoods& known) {
  return for_all_sets(pairs, [&](int within, int rows, int keys) {
    const double square = rows * keys;
    const double limit =
        known.mean() * square + std::sqrt(square * known.spread(std::min(rows, keys)));
    return within <= rounded_up(limit) && within <= known.most_pairs(rows + keys);
  });
}

// Tells whether every set, and every part of its pairs, has at most the density.
bool holds(const PairLists& pairs, const PairDensity& density) {
  return for_all_sets(pairs, [&](int within, int rows, int keys) {
    const double mean = std::sqrt(rows * keys);
    for (int some = 1; some <= within; ++some) {
      if (some > rounded_up(2 * mean * density.at(some))) return false;
    }
    return true;
  });
}

PatternComponent component_of(const PairLists& pairs) {
  PatternComponent component;
  component.key_degrees.resize(static_cast<std::size_t>(pairs.keys));
  for (const auto& row : pairs.rows) {
    component.row_degrees.push_back(static_cast<std::int64_t>(row.size()));
    for (const std::int32_t key : row) ++component.key_degrees[static_cast<std::size_t>(key)];
  }
  component.neighbourhoods = Neighbourhoods::of(pairs);
  return component;
}

TEST_CASE("the density per geometric mean holds for any rows and keys", "[io][bounds]") {
  Rng rng(37);
  int of_others = 0;
  for (int round = 0; round < 40; ++round) {
    const PairLists pairs =
        random_pairs(rng, rng.between(1, 6), rng.between(1, 6), rng.between(20, 100));
    PatternComponent component = component_of(pairs);
    if (component.pairs() == 0) continue;
    CHECK(holds(pairs, PairDensity::of_geometric_mean(component)));
    // Neighbourhoods of another pattern do not hold.
    component.neighbourhoods = Neighbourhoods::of(random_pairs(rng, 6, 6, 15));
    if (!holds(pairs, PairDensity::of_geometric_mean(component))) ++of_others;
    component.neighbourhoods.reset();
    const PairDensity dense = PairDensity::of_geometric_mean(component);
    CHECK(holds(pairs, dense));
    const auto all = static_cast<double>(component.pairs());
    CHECK(dense.at(all) >= std::sqrt(all) / 2);
  }
  CHECK(of_others > 0);
}

TEST_CASE("any rows and keys have at most the pairs that neighbourhoods allow", "[io][bounds]") {
  Rng rng(31);
  int of_others = 0;
  std::optional<Neighbourhoods> sparse;
  for (int round = 0; round < 60; ++round) {
    const PairLists pairs =
        random_pairs(rng, rng.between(1, 6), rng.between(1, 6), rng.between(0, 100));
    const auto known = Neighbourhoods::of(pairs);
    REQUIRE(known);
    CHECK(holds(pairs, *known));
    // Neighbourhoods of another pattern do not hold.
    if (sparse && !holds(pairs, *sparse)) ++of_others;
    sparse = Neighbourhoods::of(random_pairs(rng, 6, 6, 15));
  }
  CHECK(of_others > 10);
}

TEST_CASE("random pairs are spread, full squares are not", "[io][bounds]") {
  Rng rng(32);
  const PairLists random = random_pairs(rng, 512, 512, 10);
  const auto known = Neighbourhoods::of(random);
  REQUIRE(known);
  // 64 rows and 64 keys: far fewer than the 64 x 51 that the degrees allow.
  CHECK(known->most_pairs(128) < 64 * 32);
  // The same number of pairs in squares of 51 x 51.
  PairLists squares;
  squares.keys = 510;
  for (std::int32_t i = 0; i < 510; ++i) {
    auto& row = squares.rows.emplace_back();
    for (std::int32_t key = 0; key < 51; ++key) row.push_back(i / 51 * 51 + key);
  }
  CHECK(Neighbourhoods::of(squares)->most_pairs(102) >= 51 * 51);
  // Spread of either.
  auto both = Neighbourhoods::of(random_pairs(rng, 512, 512, 10));
  for (const std::int64_t n : {1, 5, 60, 512, 600}) CHECK(known->spread(n) >= known->spread(n - 1));
  if (both->mean() != known->mean()) {
    CHECK_THROWS_AS(both->include(*known), InternalError);
  }
  Neighbourhoods same = *known;
  same.include(*known);
  CHECK(same.spread(100) == known->spread(100));
}

TEST_CASE("neighbourhoods of patterns that are too large or wrong", "[io][bounds]") {
  PairLists full;
  full.keys = 1000;
  std::vector<std::int32_t> row(1000);
  for (std::int32_t key = 0; key < 1000; ++key) row[static_cast<std::size_t>(key)] = key;
  full.rows.assign(1000, row);
  CHECK_FALSE(Neighbourhoods::of(full));  // 2 x 10^9 steps
  CHECK_FALSE(Neighbourhoods::of({{}, 3}));
  CHECK_THROWS_AS(Neighbourhoods::of({{{0, 3}}, 3}), InternalError);
  CHECK_THROWS_AS(Neighbourhoods::of({{{-1}}, 3}), InternalError);
}

// Rows with up to 3 words and keys with up to 4: the sum of (words of the row) (words of the key).
TEST_CASE("any words of rows and keys have at most the pairs that neighbourhoods allow",
          "[io][bounds]") {
  Rng rng(32);
  int of_others = 0;
  for (int round = 0; round < 60; ++round) {
    const PairLists pairs = random_pairs(rng, 6, 6, rng.between(10, 100));
    const auto known = Neighbourhoods::of(pairs),
               other = Neighbourhoods::of(random_pairs(rng, 6, 6, 15));
    REQUIRE((known && other));
    for (int draw = 0; draw < 300; ++draw) {
      std::int64_t words = 0, within = 0;
      std::vector<std::int64_t> of_key;
      const std::int64_t most_row = rng.between(0, 3), most_key = rng.between(0, 4);
      for (int key = 0; key < 6; ++key) {
        words += of_key.emplace_back(rng.between(0, 3) == 0 ? 0 : most_key);
      }
      for (const auto& row : pairs.rows) {
        const std::int64_t of_row = rng.between(0, 3) == 0 ? 0 : most_row;
        words += of_row;
        for (const std::int32_t key : row) within += of_row * of_key[static_cast<std::size_t>(key)];
      }
      CHECK(static_cast<double>(within) <= known->most_pairs_of_words(words, {3, 4}));
      if (static_cast<double>(within) > other->most_pairs_of_words(words, {3, 4})) ++of_others;
    }
  }
  CHECK(of_others > 0);
}

TEST_CASE("neighbourhoods lower the density of random pairs", "[io][bounds]") {
  PatternDegrees degrees = pattern_degrees(Problem::parse("sq=600,sk=600,d=8,mask=random_5_1"));
  REQUIRE(degrees.components.size() == 1);
  REQUIRE(degrees.components.front().neighbourhoods);
  const PairDensity with(degrees.components.front());
  degrees.components.front().neighbourhoods.reset();
  const PairDensity without(degrees.components.front());
  REQUIRE(with.entries().size() == without.entries().size());
  for (std::size_t index = 0; index < with.entries().size(); ++index) {
    CHECK(with.entries()[index].density <= without.entries()[index].density);
  }
  CHECK(with.entries()[1000].density * 3 < without.entries()[1000].density * 2);
  // Shared keys and masks of other kinds: degrees only.
  CHECK_FALSE(pattern_degrees(Problem::parse("hq=2,hkv=1,sq=9,sk=9,d=8,mask=random_50_1"))
                  .components.front()
                  .neighbourhoods);
  CHECK_FALSE(pattern_degrees(Problem::parse("sq=9,sk=9,d=8,mask=causal_br"))
                  .components.front()
                  .neighbourhoods);
}

}  // namespace
}  // namespace attest::io
