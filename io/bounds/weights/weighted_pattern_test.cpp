#include "io/bounds/weights/weighted_pattern.hpp"

#include <string>

#include "core/rng.hpp"
#include "core/testing/catch.hpp"
#include "core/testing/nightly.hpp"
#include "io/bounds/dense/forward.hpp"
#include "io/bounds/patterns/pattern.hpp"
#include "io/bounds/testing/heavy_words.hpp"
#include "io/bounds/testing/random_blocks.hpp"

namespace attest::io {
namespace {

TEST_CASE("density of weighted pairs", "[io][bounds]") {
  const PatternDegrees& degrees = testing::random_blocks();
  const ClassGrid& grid = *degrees.dense_parts->grid();
  const PartWeights& weights = *degrees.dense_parts->weights(kForwardParts);
  const WeightedPairs pairs = weighted_pairs(grid, weights);
  PartWeights lighter = weights;  // a limit that does not hold
  for (PartLimit& limit : lighter.limits) limit.most = limit.most * 9 / 10;
  const WeightedPairs wrong = weighted_pairs(grid, lighter);
  CHECK(pairs.weight <= static_cast<double>(degrees.extent.pairs));
  CHECK(pairs.copies == 1);
  Rng rng(3);
  int beyond = 0;
  for (int trial = 0; trial < 2000; ++trial) {
    const auto rows = static_cast<double>(rng.between(1, 300));
    const auto keys = static_cast<double>(rng.between(1, 300));
    const double weight = testing::weight_of(
        grid, weights, testing::heavy_words(grid, weights, 1, 1, rows, keys, rng));
    if (weight == 0) continue;
    INFO(rows << " rows and " << keys << " keys have " << weight);
    CHECK(weight <= pairs.density.at(weight) * (rows + keys));
    if (weight > wrong.density.at(weight) * (rows + keys)) ++beyond;
  }
  CHECK(beyond > 0);
}

// Some pairs of two classes that a band cuts are not visible, and have no weight.
TEST_CASE("weight of the visible pairs", "[io][bounds]") {
  ClassGrid grid;
  grid.rows = {16, 10};
  grid.keys = {16, 16};
  grid.pairs = {{256, 128}, {0, 100}};
  PartWeights weights;
  weights.heaviest = 64;
  weights.weight[0][0] = weights.weight[0][1] = 64;
  weights.weight[1][1] = 16;
  CHECK(weight_of_pairs(grid, weights) == 256 + 128 + 25);
}

TEST_CASE("theorem A with weights", "[io][bounds]") {
  const PatternDegrees& degrees = testing::random_blocks();
  std::int64_t before = 0;
  for (const std::int64_t fast_words : testing::shrinking_memories()) {
    const Bound bound = theorem_a_weighted(degrees, {}, fast_words);
    INFO(bound.to_string());
    CHECK(bound.is_lower_bound());
    CHECK(bound.words >= before);  // less memory, more words
    before = bound.words;
  }
  // The weighted bound exceeds the others here.
  for (const std::int64_t fast_words : {1024, 1536}) {
    CHECK(theorem_a_weighted(degrees, {}, fast_words).words >
          greatest(forward_bounds(degrees.extent, {}, fast_words))->words);
  }
  if (!attest::testing::is_nightly()) return;
  // Heads by themselves, or as one run.
  const PatternDegrees heads =
      pattern_degrees(Problem::parse("hq=3,hkv=3," + std::string(testing::kRandomBlocks)));
  CHECK(theorem_a_weighted(heads, {}, 2048).words >=
        3 * theorem_a_weighted(degrees, {}, 2048).words);
}

TEST_CASE("where weights do not apply", "[io][bounds]") {
  const auto fault = [](const std::string& problem, std::int64_t fast_words) {
    const Bound bound =
        theorem_a_weighted(pattern_degrees(Problem::parse(problem)), {}, fast_words);
    CHECK_FALSE(bound.applies());
    return bound.to_string();
  };
  CHECK(fault(testing::kRandomBlocks, 511).find("must be at least 512") != std::string::npos);
  CHECK(fault("sq=100,d=8,mask=random_30_1", 4096).find("more than 64 classes") !=
        std::string::npos);
  CHECK(fault("sq=128,d=8,mask=block_4_30_1", 4096).find("has 16") != std::string::npos);
  CHECK(fault("sq=512,d=8,mask=block_32_100_1", 40000).find("few classes or pairs") !=
        std::string::npos);
  // Masks that are no boolean ones have no such bound.
  for (const Bound& bound :
       pattern_bounds(pattern_degrees(Problem::parse("sq=64,d=8,mask=causal_br")), {}, 4096)) {
    CHECK(bound.name != "theorem_a_weighted");
  }
}

}  // namespace
}  // namespace attest::io
