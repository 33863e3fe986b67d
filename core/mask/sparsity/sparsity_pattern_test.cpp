#include "core/mask/sparsity/sparsity_pattern.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "core/rng.hpp"
#include "core/testing/catch.hpp"

namespace attest {
namespace {

using Bytes = std::vector<std::uint8_t>;

Bytes transposed(const Bytes& visible, std::int64_t rows, std::int64_t columns) {
  Bytes result(visible.size());
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      result[static_cast<std::size_t>(j * rows + i)] =
          visible[static_cast<std::size_t>(i * columns + j)];
    }
  }
  return result;
}

// Pairs one by one, through nothing but contains().
Bytes pairs_of(const SparsityPattern& pattern) {
  Bytes visible;
  for (std::int64_t i = 0; i < pattern.rows(); ++i) {
    for (std::int64_t j = 0; j < pattern.columns(); ++j) {
      visible.push_back(pattern.contains(i, j) ? 1 : 0);
    }
  }
  return visible;
}

std::int64_t sum(const Bytes& visible) { return std::count(visible.begin(), visible.end(), 1); }

// Every form, on ragged sizes, with empty extents, rows, columns and patterns.
std::vector<SparsityPattern> samples() {
  std::vector<std::string> spellings{"block_3x5_40_1",   "block_7x2_50_2", "block_1x1_30_3",
                                     "block_64x64_50_4", "nm_3_3_8",       "nm_1_256_9",
                                     "pairs_0_11",       "pairs_100_12"};
  for (const SparsityPattern::Family& family : SparsityPattern::families()) {
    const bool any_shape = family.name != "documents" && family.name != "pattern";
    if (any_shape) spellings.push_back(family.example);
  }
  std::vector<SparsityPattern> all;
  Rng rng(1);
  for (const std::string& spelling : spellings) {
    all.push_back(SparsityPattern::parse(spelling, 0, 5));
    all.push_back(SparsityPattern::parse(spelling, 5, 0));
    all.push_back(SparsityPattern::parse(spelling, 0, 0));
    all.push_back(SparsityPattern::parse(spelling, 1, 1));
    for (int k = 0; k < 5; ++k) {
      const std::int64_t rows = rng.between(1, 30);
      all.push_back(SparsityPattern::parse(spelling, rows, rng.between(1, 30)));
    }
  }
  all.push_back(SparsityPattern::parse("documents_0x2_5_3x0_1x4", 9, 11));
  return all;
}

TEST_CASE("a block of any number of queries is counted without a step for each", "[sparsity]") {
  constexpr std::int64_t kMany = (std::int64_t{1} << 31) - 1;
  const SparsityPattern block(kMany, 3, BlockForm{kMany, 2, {{0, 2}, {0, 1}}}, "two blocks");
  CHECK(block.nnz() == 3 * kMany);  // the second block is cut at the last key
}

TEST_CASE("CSR, boolean mask and tiles of one pair are one set", "[sparsity]") {
  for (const SparsityPattern& pattern : samples()) {
    INFO(pattern.spelling() << " " << pattern.rows() << " x " << pattern.columns());
    const auto rows = pattern.rows(), columns = pattern.columns();
    const Bytes visible = pairs_of(pattern);
    CHECK(pattern.to_boolean() == visible);
    const SparsityPattern csr(rows, columns, pattern.to_csr(), "csr");
    CHECK(csr == pattern);
    CHECK(csr.to_boolean() == visible);
    const SparsityPattern tiles(rows, columns, pattern.tiles(1, 1), "tiles");
    CHECK(tiles == pattern);
    CHECK(tiles.tiles(1, 1).occupied == pattern.to_csr());
  }
}

TEST_CASE("patterns of other pairs or shapes are not equal", "[sparsity]") {
  const auto csr = [](std::vector<std::int64_t> offsets, std::vector<std::int32_t> columns) {
    return CsrForm{std::move(offsets), std::move(columns)};
  };
  const SparsityPattern pattern(2, 3, csr({0, 1, 2}, {0, 2}), "a");
  CHECK(pattern == SparsityPattern(2, 3, csr({0, 1, 2}, {0, 2}), "b"));
  CHECK_FALSE(pattern == SparsityPattern(2, 3, csr({0, 1, 2}, {0, 1}), "a"));
  CHECK_FALSE(pattern == SparsityPattern(2, 3, csr({0, 2, 2}, {0, 2}), "a"));
  CHECK_FALSE(pattern == SparsityPattern(2, 3, csr({0, 1, 1}, {0}), "a"));
  CHECK_FALSE(pattern == SparsityPattern(2, 4, csr({0, 1, 2}, {0, 2}), "a"));
}

TEST_CASE("counts and degrees by brute force", "[sparsity]") {
  for (const SparsityPattern& pattern : samples()) {
    INFO(pattern.spelling() << " " << pattern.rows() << " x " << pattern.columns());
    const auto rows = pattern.rows(), columns = pattern.columns();
    const Bytes visible = pairs_of(pattern);
    CHECK(pattern.nnz() == sum(visible));
    const auto size = static_cast<double>(visible.size());
    CHECK(pattern.density() == (size == 0 ? 0 : static_cast<double>(sum(visible)) / size));
    std::vector<std::int64_t> of_rows(static_cast<std::size_t>(rows)),
        of_columns(static_cast<std::size_t>(columns));
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < columns; ++j) {
        const auto one = visible[static_cast<std::size_t>(i * columns + j)];
        of_rows[static_cast<std::size_t>(i)] += one;
        of_columns[static_cast<std::size_t>(j)] += one;
      }
    }
    CHECK(pattern.row_degrees() == of_rows);
    CHECK(pattern.column_degrees() == of_columns);
  }
}

TEST_CASE("rows are ascending ranges that do not touch", "[sparsity]") {
  for (const SparsityPattern& pattern : samples()) {
    INFO(pattern.spelling() << " " << pattern.rows() << " x " << pattern.columns());
    std::vector<KeyRange> ranges{{7, 9}};
    for (std::int64_t i = 0; i < pattern.rows(); ++i) {
      pattern.row(i, ranges);
      std::int64_t before = -1;
      for (const KeyRange& range : ranges) {
        CHECK(range.begin > before);
        CHECK(range.end > range.begin);
        before = range.end;
      }
      CHECK(before <= pattern.columns());
    }
  }
}

TEST_CASE("occupied tiles by brute force", "[sparsity]") {
  Rng rng(2);
  for (const SparsityPattern& pattern : samples()) {
    const std::int64_t tile_q = rng.between(1, 9), tile_k = rng.between(1, 9);
    INFO(pattern.spelling() << " " << pattern.rows() << " x " << pattern.columns() << " by "
                            << tile_q << " x " << tile_k);
    CsrForm expected;
    for (std::int64_t q = 0; q < pattern.rows(); q += tile_q) {
      std::vector<std::int32_t> row;
      for (std::int64_t k = 0; k < pattern.columns(); k += tile_k) {
        bool any = false;
        for (std::int64_t i = q; i < std::min(q + tile_q, pattern.rows()); ++i) {
          for (std::int64_t j = k; j < std::min(k + tile_k, pattern.columns()); ++j) {
            any = any || pattern.contains(i, j);
          }
        }
        if (any) row.push_back(static_cast<std::int32_t>(k / tile_k));
      }
      CHECK(pattern.occupied_tiles({q, std::min(q + tile_q, pattern.rows())}, tile_k) == row);
      expected.columns.insert(expected.columns.end(), row.begin(), row.end());
      expected.row_offsets.push_back(static_cast<std::int64_t>(expected.columns.size()));
    }
    CHECK(pattern.tiles(tile_q, tile_k) == BlockForm{tile_q, tile_k, expected});
  }
}

TEST_CASE("a pattern is the transpose of its transpose", "[sparsity]") {
  for (const SparsityPattern& pattern : samples()) {
    INFO(pattern.spelling() << " " << pattern.rows() << " x " << pattern.columns());
    const SparsityPattern other = pattern.transpose();
    CHECK(other.rows() == pattern.columns());
    CHECK(other.to_boolean() ==
          transposed(pattern.to_boolean(), pattern.rows(), pattern.columns()));
    CHECK(other.column_degrees() == pattern.row_degrees());
    CHECK(other.spelling() == pattern.spelling() + "^T");
    CHECK(other.transpose() == pattern);
    CHECK(other.transpose().spelling() == pattern.spelling());
    if (std::holds_alternative<BlockForm>(pattern.form())) {
      CHECK(std::holds_alternative<BlockForm>(other.form()));
    }
  }
}

TEST_CASE("forms that are no pattern are refused with the place", "[sparsity]") {
  const auto refused = [](std::int64_t rows, std::int64_t columns,
                          const SparsityPattern::Form& form, const std::string& why) {
    INFO(why);
    CHECK_THROWS_WITH(SparsityPattern(rows, columns, form, "x"),
                      Catch::StartsWith("pattern 'x': ") && Catch::Contains(why));
    CHECK_THROWS_AS(SparsityPattern(rows, columns, form, "x"), InvalidProblem);
  };
  refused(-1, 2, CsrForm{}, "extents go from 0");
  refused(1, std::int64_t{1} << 31, CsrForm{{0, 0}, {}}, "extents go from 0");
  refused(2, 3, CsrForm{{0, 1}, {0}}, "row_offsets has 2 entries; 2 rows need 3");
  refused(2, 3, CsrForm{{}, {}}, "row_offsets has 0 entries");
  refused(2, 3, CsrForm{{1, 1, 1}, {0}}, "row_offsets[0] is 1");
  refused(2, 3, CsrForm{{0, 2, 1}, {0}}, "row_offsets[2] is 1 after 2");
  refused(2, 3, CsrForm{{0, 1, 2}, {0}}, "ends at 2, but there are 1 columns");
  refused(2, 3, CsrForm{{0, 1, 2}, {0, 3}}, "columns[1] of row 1 is 3; keys go from 0 to 2");
  refused(2, 3, CsrForm{{0, 1, 2}, {-1, 0}}, "columns[0] of row 0 is -1");
  refused(2, 3, CsrForm{{0, 0, 2}, {2, 1}}, "columns[1] of row 1 is 1; it comes after 2");
  refused(2, 3, CsrForm{{0, 0, 2}, {1, 1}}, "key 1 is there twice");
  refused(2, 3, BlockForm{0, 1, {}}, "both sizes must be from 1");
  refused(2, 3, BlockForm{1, std::int64_t{1} << 31, {}}, "both sizes must be from 1");
  refused(3, 3, BlockForm{2, 2, {{0, 1, 2}, {0, 2}}}, "block columns go from 0 to 1");
  refused(3, 3, BlockForm{2, 2, {{0, 1, 2, 2}, {0, 1}}}, "2 rows need 3");
  refused(1, 4, NmForm{3, 2, {0, 1, 2}}, "1 <= N <= M <= 256");
  refused(1, 4, NmForm{1, 257, {0}}, "1 <= N <= M <= 256");
  refused(1, 5, NmForm{1, 4, {0}}, "has 1 offsets; it needs 1 rows x 2 groups x 1");
  refused(1, 4, NmForm{2, 4, {1, 1}}, "offsets[1] is 1 after 1");
  refused(1, 4, NmForm{1, 4, {4}}, "offsets[0] is 4; offsets must be below 4");
  refused(1, 4, RangeForm{{0, 1}, {{1, 5}}}, "ranges[0] of row 0 is 1 .. 5");
  refused(1, 4, RangeForm{{0, 1}, {{2, 2}}}, "hold a key");
  refused(1, 4, RangeForm{{0, 2}, {{2, 3}, {1, 2}}}, "ranges[1] of row 0");
  CHECK(SparsityPattern(1, 4, RangeForm{{0, 2}, {{0, 1}, {1, 4}}}, "x").nnz() == 4);
}

}  // namespace
}  // namespace attest
