#include "io/bounds/class_grid.hpp"

#include <algorithm>
#include <memory>
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
  CHECK(grid->visible[0] == grid->visible[1]);
  CHECK(grid->visible[0] == grid->visible[2]);
  CHECK(grid->visible[0] != grid->visible[3]);
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
TEST_CASE("blocks that a band cuts are left out", "[io][bounds]") {
  for (const char* mask :
       {"causal_br+block_64_60_3", "causal_tl+block_48x64_70_2", "window_130_20+block_64_60_3"}) {
    const Problem problem = Problem::parse("sq=330,sk=300,d=4,mask=" + std::string(mask));
    INFO(mask);
    const auto grid = class_grid(problem);
    REQUIRE(grid);
    const Sequence sequence = problem.sequences().front();
    const std::int64_t block_q = std::string(mask).find("48x64") != std::string::npos ? 48 : 64;
    std::int64_t uncut = 0, all = 0;
    for (std::int64_t i = 0; i < problem.seqlen_q; i += block_q) {
      for (std::int64_t j = 0; j < problem.seqlen_k; j += 64) {
        std::int64_t pairs_of_block = 0, seen = 0;
        for (std::int64_t row = i; row < std::min(i + block_q, problem.seqlen_q); ++row) {
          for (std::int64_t key = j; key < std::min<std::int64_t>(j + 64, problem.seqlen_k);
               ++key) {
            ++pairs_of_block;
            seen += problem.mask.visible(sequence, row, key) ? 1 : 0;
          }
        }
        if (seen == pairs_of_block) uncut += seen;
        all += seen;
      }
    }
    CHECK(pairs(*grid) == uncut);
    CHECK(uncut > 0);
    CHECK(uncut < all);
  }
}

TEST_CASE("masks without a grid", "[io][bounds]") {
  CHECK_FALSE(grid_of("sq=64,d=4,mask=causal_br"));
  CHECK_FALSE(grid_of("sq=64,d=4"));
  CHECK_FALSE(grid_of("sq=100,sk=100,d=4,mask=random_50_1"));  // 100 different rows
}

}  // namespace
}  // namespace attest::io
