#include "io/bounds/patterns/class_grid.hpp"

#include <memory>
#include <numeric>
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
  for (const Counts& row : grid.pairs) sum = std::accumulate(row.begin(), row.end(), sum);
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

// Rows of blocks of 16 keys, `sizes` of each.
Problem rows_of_blocks(const std::vector<std::string>& blocks, const Counts& sizes) {
  auto mask = std::make_shared<BooleanMask>();
  mask->columns = 16 * static_cast<std::int64_t>(blocks.front().size());
  mask->spelling = "file_mask.txt";
  for (std::size_t n = 0; n < blocks.size(); ++n) {
    mask->rows += sizes[n];
    for (std::int64_t row = 0; row < sizes[n]; ++row) {
      for (std::int64_t key = 0; key < mask->columns; ++key) {
        mask->visible.push_back(blocks[n][static_cast<std::size_t>(key / 16)] == '1' ? 1 : 0);
      }
    }
  }
  Problem problem;
  problem.seqlen_q = mask->rows;
  problem.seqlen_k = mask->columns;
  problem.mask.boolean = mask;
  return problem;
}

// Block rows that are equal by chance are as many classes, and the last rows may be fewer.
TEST_CASE("larger classes are split", "[io][bounds]") {
  const auto grid = class_grid(
      rows_of_blocks({"1100", "0111", "1100", "1010", "1100", "0011"}, {16, 16, 16, 16, 16, 7}));
  REQUIRE(grid);
  CHECK(grid->rows == Counts{16, 16, 16, 16, 16, 7});
  CHECK(grid->keys == Counts{16, 16, 16, 16});
  CHECK(grid->pairs[0] == grid->pairs[1]);
  CHECK(grid->pairs[0] == grid->pairs[2]);
  CHECK(grid->pairs[0] != grid->pairs[3]);
  CHECK(pairs(*grid) == 16 * (3 * 32 + 48 + 32) + 7 * 32);
}

// With one class more than 64 it stays one.
TEST_CASE("classes are not split into too many", "[io][bounds]") {
  std::vector<std::string> blocks;
  for (int row = 1; row <= 63; ++row) {
    std::string& block = blocks.emplace_back();
    for (int key = 0; key < 6; ++key) block += (row >> key & 1) != 0 ? '1' : '0';
  }
  const auto of_first = [&](std::int64_t rows) {
    Counts sizes(blocks.size(), 2);
    sizes.front() = rows;
    return class_grid(rows_of_blocks(blocks, sizes));
  };
  REQUIRE(of_first(4));
  CHECK(of_first(4)->rows == Counts(64, 2));
  REQUIRE(of_first(6));
  CHECK(of_first(6)->rows.front() == 6);
  CHECK(of_first(6)->rows.size() == 63);
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

// Each query of a cut block sees other keys: as classes they would be too many.
TEST_CASE("blocks that a band cuts are in classes with others", "[io][bounds]") {
  struct Cut {
    const char* mask;
    std::int64_t block_q, block_k;
  };
  for (const Cut& cut :
       {Cut{"causal_br+block_64_60_3", 64, 64}, Cut{"causal_tl+block_48x64_70_2", 48, 64},
        Cut{"window_130_20+block_64_60_3", 64, 64}}) {
    const Problem problem = Problem::parse("sq=330,sk=300,d=4,mask=" + std::string(cut.mask));
    INFO(cut.mask);
    const auto grid = class_grid(problem);
    REQUIRE(grid);
    CHECK(pairs(*grid) == extent_of(problem).pairs);
    CHECK(grid->rows.front() == cut.block_q);
    CHECK(grid->keys.front() == cut.block_k);
    int whole = 0, part = 0;
    for (std::size_t i = 0; i < grid->rows.size(); ++i) {
      for (std::size_t j = 0; j < grid->keys.size(); ++j) {
        const std::int64_t seen = grid->pairs[i][j];
        if (seen == grid->rows[i] * grid->keys[j]) ++whole;
        if (seen > 0 && seen < grid->rows[i] * grid->keys[j]) ++part;
      }
    }
    CHECK(whole > 0);
    CHECK(part > 0);
  }
}

TEST_CASE("masks without a grid", "[io][bounds]") {
  CHECK_FALSE(grid_of("sq=64,d=4,mask=causal_br"));
  CHECK_FALSE(grid_of("sq=64,d=4"));
  CHECK_FALSE(grid_of("sq=100,sk=100,d=4,mask=random_50_1"));  // 100 different rows
}

}  // namespace
}  // namespace attest::io
