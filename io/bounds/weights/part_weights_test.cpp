#include "io/bounds/weights/part_weights.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

#include "core/rng.hpp"
#include "core/testing/catch.hpp"
#include "core/testing/nightly.hpp"

namespace attest::io {
namespace {

ClassGrid random_grid(std::size_t classes, std::int64_t percent) {
  Rng rng(5);
  ClassGrid grid;
  constexpr std::int64_t kSize = 16;
  grid.rows.assign(classes, kSize);
  grid.keys.assign(classes, kSize);
  for (std::size_t i = 0; i < classes; ++i) {
    auto& row = grid.pairs.emplace_back();
    for (std::size_t j = 0; j < classes; ++j) {
      row.push_back(rng.between(0, 99) < percent ? kSize * kSize : 0);
    }
  }
  return grid;
}

std::int64_t weight_of(const WeightGrid& grid) {
  std::int64_t sum = 0;
  for (const WeightRow& row : grid) sum += std::accumulate(row.begin(), row.end(), std::int64_t{0});
  return sum;
}

// A search for each takes seconds.
std::vector<PartCosts> costs_tried() {
  if (!attest::testing::is_nightly()) return {kForwardParts};
  return {kSmallForwardParts, kForwardParts, kBackwardParts};
}

TEST_CASE("weights of random blocks", "[io][bounds]") {
  const PartCosts costs = GENERATE(from_range(costs_tried()));
  const ClassGrid grid = random_grid(32, 25);
  const auto weights = part_weights(grid, costs);
  REQUIRE(weights);
  std::int16_t greatest = 0;
  for (std::size_t i = 0; i < grid.rows.size(); ++i) {
    for (std::size_t j = 0; j < grid.keys.size(); ++j) {
      if (grid.pairs[i][j] == 0) CHECK(weights->weight[i][j] == 0);
      greatest = std::max(greatest, weights->weight[i][j]);
    }
  }
  CHECK(greatest <= weights->heaviest);
  REQUIRE(weights->limits.front().costs == costs);
  for (const PartLimit& limit : weights->limits) {
    INFO(limit.most << " in parts that cost " << limit.costs.full);
    CHECK(prove_limit(weights->weight, limit, std::int64_t{1} << 30).proved);
  }

  // With all weights alike the same total takes fewer parts: what the weights are for.
  WeightGrid alike{};
  for (std::size_t i = 0; i < grid.rows.size(); ++i) {
    for (std::size_t j = 0; j < grid.keys.size(); ++j) alike[i][j] = grid.pairs[i][j] > 0 ? 1 : 0;
  }
  const std::int64_t parts = weight_of(weights->weight) / weights->limits.front().most;
  REQUIRE(parts > 0);
  const std::int64_t most = weight_of(alike) / parts;
  const PartSearch search = prove_limit(alike, {costs, most}, std::int64_t{1} << 30);
  CHECK_FALSE(search.proved);
  CHECK(search.least);
}

// Searches of few classes are short, and parts as large as can be are limited.
TEST_CASE("weights of few classes", "[io][bounds]") {
  const PartCosts costs = GENERATE(from_range(costs_tried()));
  const auto weights = part_weights(random_grid(16, 40), costs);
  REQUIRE(weights);
  PartCosts larger = weights->limits.back().costs;
  CHECK(larger.full > costs.full);
  larger.full += costs.row;
  CHECK((larger.full > costs.full * 3 / 2 || !can_search(larger)));
}

TEST_CASE("weights that would gain nothing", "[io][bounds]") {
  CHECK_FALSE(part_weights(random_grid(32, 100), kForwardParts));
  CHECK_FALSE(part_weights(random_grid(32, 95), kForwardParts));
  CHECK_FALSE(part_weights(random_grid(15, 25), kForwardParts));
  CHECK_FALSE(part_weights(random_grid(64, 3), kForwardParts));
}

}  // namespace
}  // namespace attest::io
