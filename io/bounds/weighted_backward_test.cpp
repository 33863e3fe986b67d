#include "io/bounds/weighted_backward.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/rng.hpp"
#include "core/testing/catch.hpp"
#include "io/bounds/backward.hpp"
#include "io/bounds/backward_pattern.hpp"
#include "io/bounds/testing/random_blocks.hpp"

namespace attest::io {
namespace {

constexpr std::int64_t kHeadDim = 8;

// Words of the rows and of the keys of each class, all that there are for most of them.
struct UsableWords {
  std::vector<double> rows, keys;

  double total() const {
    return std::accumulate(rows.begin(), rows.end(), 0.) +
           std::accumulate(keys.begin(), keys.end(), 0.);
  }
};

double weight_of(const ClassGrid& grid, const PartWeights& weights, const UsableWords& words) {
  double weight = 0;
  for (std::size_t i = 0; i < grid.rows.size(); ++i) {
    for (std::size_t j = 0; j < grid.keys.size(); ++j) {
      weight += words.rows[i] * words.keys[j] * weights.weight[i][j];
    }
  }
  return weight / static_cast<double>(weights.heaviest * kHeadDim * kHeadDim);
}

// Takes so many words, those of the classes with most weight first.
std::vector<double> taken(const std::vector<std::int64_t>& members, std::int64_t words_of_one,
                          const std::vector<double>& value, double words) {
  std::vector<std::size_t> order(members.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return value[a] > value[b]; });
  std::vector<double> result(members.size());
  for (const std::size_t one : order) {
    result[one] = std::min(words, static_cast<double>(members[one] * words_of_one * kHeadDim));
    words -= result[one];
  }
  return result;
}

// Heavy ones, by turns: rows for the keys and keys for the rows.
UsableWords heavy(const ClassGrid& grid, const PartWeights& weights, double of_rows, double of_keys,
                  Rng& rng) {
  std::vector<double> drawn(grid.rows.size());
  for (double& value : drawn) value = rng.uniform();
  UsableWords words{taken(grid.rows, 3, drawn, of_rows), {}};
  for (int round = 0; round < 4; ++round) {
    std::vector<double> by_key(grid.keys.size()), by_row(grid.rows.size());
    for (std::size_t i = 0; i < by_row.size(); ++i) {
      for (std::size_t j = 0; j < by_key.size(); ++j) {
        by_key[j] += words.rows[i] * weights.weight[i][j];
      }
    }
    words.keys = taken(grid.keys, 4, by_key, of_keys);
    for (std::size_t i = 0; i < by_row.size(); ++i) {
      for (std::size_t j = 0; j < by_key.size(); ++j) {
        by_row[i] += words.keys[j] * weights.weight[i][j];
      }
    }
    words.rows = taken(grid.rows, 3, by_row, of_rows);
  }
  return words;
}

TEST_CASE("products of weighted pairs", "[io][bounds]") {
  const PatternDegrees& degrees = random_blocks();
  const ClassGrid& grid = *degrees.dense_parts->grid();
  REQUIRE(degrees.dense_parts->weights(kBackwardParts));
  const PartWeights& weights = *degrees.dense_parts->weights(kBackwardParts);
  const WeightedProducts products(grid, weights, kHeadDim);
  CHECK(products.all_work() <= 12 * static_cast<double>(degrees.extent.pairs));
  PartWeights lighter = weights;  // a limit that does not hold
  lighter.limit.most = weights.limit.most * 9 / 10;
  const WeightedProducts wrong(grid, lighter, kHeadDim);
  Rng rng(3);
  int beyond = 0;
  for (int trial = 0; trial < 2000; ++trial) {
    const double of_rows = rng.uniform() * 4000, of_keys = rng.uniform() * 4000;
    const UsableWords words = heavy(grid, weights, of_rows, of_keys, rng);
    const double weight = weight_of(grid, weights, words);
    INFO(words.total() << " words have " << weight);
    CHECK(weight <= products.most_products(words.total()));
    if (weight > wrong.most_products(words.total())) ++beyond;
  }
  CHECK(beyond > 0);
  // Weights for parts of other costs say nothing of shares.
  CHECK_THROWS_AS(WeightedProducts(grid, *degrees.dense_parts->weights(kForwardParts), kHeadDim),
                  InternalError);
}

TEST_CASE("work of weighted pairs, some of them carried", "[io][bounds]") {
  const PatternDegrees& degrees = random_blocks();
  const PartWeights& weights = *degrees.dense_parts->weights(kBackwardParts);
  const WeightedProducts products(*degrees.dense_parts->grid(), weights, kHeadDim);
  double before = 0;
  for (double words = 1; words < 1e6; words *= 1.1) {
    const double most = products.most_work(words);
    INFO(words << " words");
    CHECK(most >= before);
    before = most;
    CHECK(most >= std::min(products.most_products(words), products.all_work()));
    CHECK(most <= backward_segment_maximum(words, kHeadDim) * 1.02);
    const double carried = words / 3, rest = products.most_products(words - carried);
    CHECK(most >= std::min(rest >= 4 * carried ? rest + 4 * carried : 4 * std::sqrt(rest * carried),
                           products.all_work()));
  }
  CHECK(before >= products.all_work());
}

TEST_CASE("theorem C with weights", "[io][bounds]") {
  const PatternDegrees& degrees = random_blocks();
  std::int64_t before = 0;
  for (const std::int64_t fast_words : {8192, 4096, 3000, 2048, 1024}) {
    const Bound bound = theorem_c_weighted(degrees, {}, fast_words);
    INFO(bound.to_string());
    CHECK(bound.is_lower_bound());
    CHECK(bound.words >= before);  // less memory, more words
    before = bound.words;
  }
  // What it is for.
  for (const std::int64_t fast_words : {1536, 2048}) {
    const std::vector<Bound> others = backward_bounds(degrees.extent, {}, fast_words);
    CHECK(theorem_c_weighted(degrees, {}, fast_words).words > greatest(others)->words);
    CHECK(theorem_c_weighted(degrees, {}, fast_words).words >
          theorem_c_pattern(backward_parts(degrees), {}, fast_words).words);
  }
  const PatternDegrees heads =
      pattern_degrees(Problem::parse("hq=3,hkv=3," + std::string(kRandomBlocks)));
  CHECK(theorem_c_weighted(heads, {}, 2048).words ==
        3 * theorem_c_weighted(degrees, {}, 2048).words);
}

TEST_CASE("where weights do not apply backward", "[io][bounds]") {
  const auto fault = [](const std::string& problem, std::int64_t fast_words) {
    const Bound bound =
        theorem_c_weighted(pattern_degrees(Problem::parse(problem)), {}, fast_words);
    CHECK_FALSE(bound.applies());
    return bound.to_string();
  };
  CHECK(fault(kRandomBlocks, 1023).find("must be at least 1024") != std::string::npos);
  CHECK(fault("sq=512,d=8,mask=block_32_100_1", 40000).find("few classes or pairs") !=
        std::string::npos);
  CHECK(
      backward_pattern_bounds(pattern_degrees(Problem::parse("sq=64,d=8,mask=causal_br")), {}, 4096)
          .size() == 2);
}

}  // namespace
}  // namespace attest::io
