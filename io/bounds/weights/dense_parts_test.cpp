#include "io/bounds/weights/dense_parts.hpp"

#include <algorithm>
#include <bit>
#include <functional>
#include <vector>

#include "core/error.hpp"
#include "core/rng.hpp"
#include "core/testing/catch.hpp"
#include "core/testing/nightly.hpp"
#include "io/machine/words.hpp"

namespace attest::io {
namespace {

constexpr std::int64_t kSteps = std::int64_t{1} << 30;

WeightGrid random_grid(Rng& rng, std::size_t rows, std::size_t columns, std::int64_t percent) {
  WeightGrid grid{};
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < columns; ++j) {
      if (rng.between(0, 99) < percent) {
        grid[i][j] = static_cast<std::int16_t>(rng.between(1, 255));
      }
    }
  }
  return grid;
}

// The least limit that holds, through all sets of rows, with the heaviest columns of each.
std::int64_t least_limit(const WeightGrid& grid, int rows, const PartCosts& costs) {
  std::int64_t least = 0;
  for (std::uint32_t set = 1; set < std::uint32_t{1} << rows; ++set) {
    const int count = std::popcount(set);
    std::vector<std::int64_t> sums(kMostClasses);
    for (int row = 0; row < rows; ++row) {
      if ((set >> row & 1u) == 0) continue;
      for (std::size_t j = 0; j < kMostClasses; ++j) {
        sums[j] += grid[static_cast<std::size_t>(row)][j];
      }
    }
    std::sort(sums.begin(), sums.end(), std::greater<>());
    std::int64_t weight = 0;
    for (int columns = 1; costs.of(count, columns) <= costs.reach(); ++columns) {
      weight += sums[static_cast<std::size_t>(columns - 1)];
      least = std::max(least, tiles(weight * 2 * costs.full, costs.allowance(count, columns)));
    }
  }
  return least;
}

void check_limit(const WeightGrid& grid, int rows, const PartCosts& costs) {
  const std::int64_t least = least_limit(grid, rows, costs);
  INFO("parts of " << costs.full << " and " << costs.beyond << ", " << costs.row << " a row and "
                   << costs.column << " a column, least limit " << least);
  CHECK(prove_limit(grid, {costs, least}, kSteps).proved);
  CHECK(prove_limit(grid, {costs, least + least / 50 + 1}, kSteps).proved);
  for (const std::int64_t most : {least - 1, least - least / 20 - 1}) {
    if (most < 0) continue;
    const PartSearch search = prove_limit(grid, {costs, most}, kSteps);
    CHECK_FALSE(search.proved);
    REQUIRE(search.least);
    CHECK(*search.least > most);
    CHECK(*search.least <= least);
  }
}

TEST_CASE("limits hold for all parts and not below", "[io][bounds]") {
  Rng rng(20261124);
  const int trials = attest::testing::is_nightly() ? 400 : 12;
  for (int trial = 0; trial < trials; ++trial) {
    const auto rows = static_cast<int>(rng.between(1, 8));
    const auto columns = static_cast<std::size_t>(rng.between(1, 12));
    check_limit(random_grid(rng, static_cast<std::size_t>(rows), columns, rng.between(10, 100)),
                rows, {1, 1, static_cast<int>(rng.between(2, 12)), 0});
  }
  // Other costs, and parts beyond full ones.
  for (int trial = 0; trial < trials; ++trial) {
    const auto rows = static_cast<int>(rng.between(1, 8));
    const auto columns = static_cast<std::size_t>(rng.between(1, 12));
    const PartCosts costs{static_cast<int>(rng.between(2, 4)), static_cast<int>(rng.between(2, 4)),
                          static_cast<int>(rng.between(8, 26)),
                          static_cast<int>(rng.between(0, 8))};
    check_limit(random_grid(rng, static_cast<std::size_t>(rows), columns, rng.between(10, 100)),
                rows, costs);
  }
  // Large enough for more sets of columns than are looked at for one set of rows.
  for (const std::int64_t percent : {40, 20, 90}) {
    check_limit(random_grid(rng, 16, 64, percent), 16, {1, 1, 12, 0});
    check_limit(random_grid(rng, 14, 40, percent), 14, {1, 1, 16, 0});
    check_limit(random_grid(rng, 12, 64, percent), 12, {1, 1, 20, 0});
    check_limit(random_grid(rng, 14, 50, percent), 14, {3, 4, 40, 7});
    if (!attest::testing::is_nightly()) break;
  }
}

TEST_CASE("a search ends with its steps", "[io][bounds]") {
  Rng rng(1);
  const WeightGrid grid = random_grid(rng, 64, 64, 25);
  const PartSearch search = prove_limit(grid, {{1, 1, 16, 0}, 6000}, 100000);
  CHECK_FALSE(search.proved);
  CHECK_FALSE(search.least);
  CHECK(search.steps >= 100000);
  CHECK(search.steps < 110000);
  CHECK(prove_limit({}, {{1, 1, 16, 0}, 0}, kSteps).proved);
}

TEST_CASE("grids and parts that are out of range", "[io][bounds]") {
  for (const PartCosts& costs :
       {PartCosts{1, 1, 1, 0}, PartCosts{1, 1, 21, 0}, PartCosts{1, 1, 18, 3},
        PartCosts{0, 1, 10, 0}, PartCosts{1, -1, 10, 0}, PartCosts{2, 1, 22, 0},
        PartCosts{1, 2, 39, 0}, PartCosts{1, 20, 39, 0}, PartCosts{5, 1, 9, 0},
        PartCosts{1, 8, 4, 5}, PartCosts{1, 1, 1 << 30, 0}, PartCosts{1, 1, 10, -1}}) {
    CHECK_FALSE(can_search(costs));
    CHECK_THROWS_AS(prove_limit({}, {costs, 5}, kSteps), InternalError);
  }
  const PartCosts sixteen{1, 1, 16, 0};
  CHECK_THROWS_AS(prove_limit({}, {sixteen, -1}, kSteps), InternalError);
  WeightGrid grid{};
  grid[3][4] = 256;
  CHECK_THROWS_AS(prove_limit(grid, {sixteen, 5}, kSteps), InternalError);
  grid[3][4] = -1;
  CHECK_THROWS_AS(prove_limit(grid, {sixteen, 5}, kSteps), InternalError);
}

}  // namespace
}  // namespace attest::io
