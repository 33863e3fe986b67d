#include "io/bounds/weights/weighted_backward.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/rng.hpp"
#include "core/testing/catch.hpp"
#include "core/testing/nightly.hpp"
#include "io/bounds/dense/backward.hpp"
#include "io/bounds/patterns/backward_pattern.hpp"
#include "io/bounds/testing/heavy_words.hpp"
#include "io/bounds/testing/random_blocks.hpp"

namespace attest::io {
namespace {

constexpr std::int64_t kHeadDim = 8;

TEST_CASE("products of weighted pairs", "[io][bounds]") {
  const PatternDegrees& degrees = testing::random_blocks();
  const ClassGrid& grid = *degrees.dense_parts->grid();
  REQUIRE(degrees.dense_parts->weights(kBackwardParts));
  const PartWeights& weights = *degrees.dense_parts->weights(kBackwardParts);
  const WeightedProducts products(grid, weights, kHeadDim);
  CHECK(products.all_work() <= 12 * static_cast<double>(degrees.extent.pairs));
  PartWeights lighter = weights;  // a limit that does not hold
  for (PartLimit& limit : lighter.limits) limit.most = limit.most * 9 / 10;
  const WeightedProducts wrong(grid, lighter, kHeadDim);
  Rng rng(3);
  int beyond = 0;
  const int trials = attest::testing::is_nightly() ? 2000 : 50;
  for (int trial = 0; trial < trials; ++trial) {
    const double of_rows = rng.uniform() * 4000, of_keys = rng.uniform() * 4000;
    const testing::UsedWords used =
        testing::heavy_words(grid, weights, 3 * kHeadDim, 4 * kHeadDim, of_rows, of_keys, rng);
    const double words = std::accumulate(used.rows.begin(), used.rows.end(), 0.) +
                         std::accumulate(used.keys.begin(), used.keys.end(), 0.);
    const double weight = testing::weight_of(grid, weights, used) / (kHeadDim * kHeadDim);
    INFO(words << " words have " << weight);
    CHECK(weight <= products.most_products(words));
    if (weight > wrong.most_products(words)) ++beyond;
  }
  CHECK(beyond > 0);
  // Weights for parts of other costs say nothing of shares.
  CHECK_THROWS_AS(WeightedProducts(grid, *degrees.dense_parts->weights(kForwardParts), kHeadDim),
                  InternalError);
}

TEST_CASE("work of weighted pairs, some of them carried", "[io][bounds]") {
  const PatternDegrees& degrees = testing::random_blocks();
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
  const PatternDegrees& degrees = testing::random_blocks();
  std::int64_t before = 0;
  for (const std::int64_t fast_words : testing::shrinking_memories()) {
    const Bound bound = theorem_c_weighted(degrees, {}, fast_words);
    INFO(bound.to_string());
    CHECK(bound.is_lower_bound());
    CHECK(bound.words >= before);  // less memory, more words
    before = bound.words;
  }
  // The weighted bound exceeds the others here.
  for (const std::int64_t fast_words : {1536, 2048}) {
    const std::vector<Bound> others = backward_bounds(degrees.extent, {}, fast_words);
    CHECK(theorem_c_weighted(degrees, {}, fast_words).words > greatest(others)->words);
    CHECK(theorem_c_weighted(degrees, {}, fast_words).words >
          theorem_c_pattern(backward_parts(degrees), {}, fast_words).words);
  }
  if (!attest::testing::is_nightly()) return;
  const PatternDegrees heads =
      pattern_degrees(Problem::parse("hq=3,hkv=3," + std::string(testing::kRandomBlocks)));
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
  CHECK(fault(testing::kRandomBlocks, 511).find("must be at least 512") != std::string::npos);
  CHECK(fault("sq=512,d=8,mask=block_32_100_1", 40000).find("few classes or pairs") !=
        std::string::npos);
  // Masks that are no boolean ones have no such bound.
  for (const Bound& bound : backward_pattern_bounds(
           pattern_degrees(Problem::parse("sq=64,d=8,mask=causal_br")), {}, 4096)) {
    CHECK(bound.name != "theorem_c_weighted");
  }
}

}  // namespace
}  // namespace attest::io
