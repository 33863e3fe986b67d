#include "io/bounds/class_grid.hpp"

#include <string>

#include "core/testing/catch.hpp"
#include "io/bounds/extent.hpp"

namespace attest::io {
namespace {

using Counts = std::vector<std::int64_t>;

std::optional<ClassGrid> grid_of(const std::string& text) {
  return class_grid(Problem::parse(text));
}

// Visible pairs of a copy, by classes.
std::int64_t pairs(const ClassGrid& grid) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < grid.rows.size(); ++i) {
    for (std::size_t j = 0; j < grid.keys.size(); ++j) {
      if (grid.visible[i][j] != 0) sum += grid.rows[i] * grid.keys[j];
    }
  }
  return sum;
}

TEST_CASE("classes of a block mask are its blocks", "[io][bounds]") {
  const auto grid = grid_of("b=2,hq=3,hkv=3,sq=50,sk=70,d=4,mask=block_16x8_50_11");
  REQUIRE(grid);
  CHECK(grid->rows == Counts{16, 16, 16, 2});
  CHECK(grid->keys == Counts{8, 8, 8, 8, 8, 8, 8, 8, 6});
  CHECK(grid->copies == 6);
  CHECK(6 * pairs(*grid) ==
        extent_of(Problem::parse("b=2,hq=3,hkv=3,sq=50,sk=70,d=4,mask=block_16x8_50_11")).pairs);
}

TEST_CASE("heads that share keys are rows of one grid", "[io][bounds]") {
  const auto grid = grid_of("hq=6,hkv=2,sq=32,sk=32,d=4,mask=block_16_60_1");
  REQUIRE(grid);
  CHECK(grid->copies == 2);
  for (const std::int64_t rows : grid->rows) CHECK(rows % 3 == 0);
  CHECK(2 * pairs(*grid) ==
        extent_of(Problem::parse("hq=6,hkv=2,sq=32,sk=32,d=4,mask=block_16_60_1")).pairs);
}

// Condition K4: the bounds do not count them.
TEST_CASE("rows with one key are in no class", "[io][bounds]") {
  CHECK_FALSE(grid_of("sq=8,sk=8,d=2,mask=block_1x1_0_1"));
  const Problem problem = Problem::parse("sq=40,sk=40,d=2,mask=random_4_2");
  const auto grid = class_grid(problem);
  REQUIRE(grid);
  CHECK(pairs(*grid) == extent_of(problem).pairs);
  CHECK(extent_of(problem).rows_one > 0);
}

TEST_CASE("masks without a grid", "[io][bounds]") {
  CHECK_FALSE(grid_of("sq=64,d=4,mask=causal_br"));
  CHECK_FALSE(grid_of("sq=64,d=4"));
  CHECK_FALSE(grid_of("sq=100,sk=100,d=4,mask=random_50_1"));  // 100 different rows
}

}  // namespace
}  // namespace attest::io
