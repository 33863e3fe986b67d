// The spellings of SparsityPattern.
#include <bit>
#include <cmath>
#include <set>
#include <string>

#include "core/error.hpp"
#include "core/mask/sparsity/sparsity_pattern.hpp"
#include "core/testing/catch.hpp"

namespace attest {
namespace {

// The rows as text, one character per key.
std::string drawn(const SparsityPattern& pattern) {
  std::string text;
  for (std::int64_t i = 0; i < pattern.rows(); ++i) {
    for (std::int64_t j = 0; j < pattern.columns(); ++j) {
      text += pattern.contains(i, j) ? '1' : '0';
    }
    text += '\n';
  }
  return text;
}

std::string drawn(const std::string& spelling, std::int64_t rows, std::int64_t columns) {
  return drawn(SparsityPattern::parse(spelling, rows, columns));
}

TEST_CASE("patterns that are not random, drawn", "[sparsity]") {
  CHECK(drawn("blockband_2x3_0", 5, 7) == "1110000\n1110000\n0001110\n0001110\n0000001\n");
  CHECK(drawn("blockband_2_1", 6, 6) == "111100\n111100\n111111\n111111\n001111\n001111\n");
  CHECK(drawn("documents_2_1x3_0_1x0", 4, 5) == "11000\n11000\n00111\n00000\n");
  CHECK(drawn("dilated_1_1_2", 5, 5) == "10100\n01010\n10101\n01010\n00101\n");
  CHECK(drawn("dilated_inf_0_2", 4, 4) == "1000\n0100\n1010\n0101\n");
  CHECK(drawn("dilated_1_0_2", 2, 4) == "1010\n0101\n");
  CHECK(drawn("dilated_0_inf_3", 4, 2) == "01\n00\n10\n01\n");
  CHECK(drawn("global_1_1_0", 4, 4) == "1111\n1100\n1110\n1011\n");
  CHECK(drawn("global_0_0_0", 2, 4) == "0010\n0001\n");
  CHECK(drawn("butterfly_1", 4, 4) == "1110\n1101\n1011\n0111\n");
  CHECK(drawn("butterfly_2x1", 3, 3) == "111\n111\n110\n");
}

TEST_CASE("butterfly: indices of blocks differ in at most one bit", "[sparsity]") {
  const auto pattern = SparsityPattern::parse("butterfly_3x2", 37, 41);
  for (std::int64_t i = 0; i < 37; ++i) {
    for (std::int64_t j = 0; j < 41; ++j) {
      const auto differ = static_cast<std::uint64_t>((i / 3) ^ (j / 2));
      CHECK(pattern.contains(i, j) == (std::popcount(differ) <= 1));
    }
  }
}

TEST_CASE("whole rows, columns and blocks", "[sparsity]") {
  const auto rows = SparsityPattern::parse("rows_40_1", 40, 7);
  for (const std::int64_t degree : rows.row_degrees()) CHECK((degree == 0 || degree == 7));
  const auto columns = SparsityPattern::parse("columns_40_1", 7, 40);
  CHECK(columns == SparsityPattern::parse("rows_40_1", 40, 7).transpose());
  for (const auto& pattern : {rows, columns, SparsityPattern::parse("block_3x5_40_1", 40, 40)}) {
    CHECK(pattern.nnz() > 0);
    CHECK(pattern.density() < 1);
  }
  const auto blocks = SparsityPattern::parse("block_3x5_40_1", 40, 40);
  for (std::int64_t i = 0; i < 40; ++i) {
    for (std::int64_t j = 0; j < 40; ++j) {
      CHECK(blocks.contains(i, j) == blocks.contains(i / 3 * 3, j / 5 * 5));
    }
  }
}

TEST_CASE("N of every M keys", "[sparsity]") {
  const auto pattern = SparsityPattern::parse("nm_2_4_5", 50, 10);
  std::vector<std::int64_t> of_offset(4);
  for (std::int64_t i = 0; i < 50; ++i) {
    for (const std::int64_t group : {0, 4}) {
      std::int64_t count = 0;
      for (std::int64_t j = 0; j < 4; ++j) {
        const std::int64_t one = pattern.contains(i, group + j) ? 1 : 0;
        count += one;
        of_offset[static_cast<std::size_t>(j)] += one;
      }
      CHECK(count == 2);
    }
  }
  for (const std::int64_t count : of_offset) CHECK((count > 0 && count < 100));
  // 1:2, and the last group of one key: it is seen when its offset is 0.
  CHECK(SparsityPattern::parse("nm_2_2_5", 3, 5).nnz() == 15);
}

// The number of cells drawn is binomial: within six deviations of its mean.
TEST_CASE("draws have the density asked for", "[sparsity]") {
  for (const double percent : {0.01, 0.5, 7.0, 50.0, 99.0}) {
    const auto text = std::to_string(percent);
    for (const char* seed : {"1", "2"}) {
      const auto pattern = SparsityPattern::parse("pairs_" + text + "_" + seed, 700, 1100);
      const double cells = 700.0 * 1100.0, p = percent / 100;
      INFO(pattern.spelling() << ": " << pattern.nnz());
      CHECK(std::abs(static_cast<double>(pattern.nnz()) - cells * p) <=
            6 * std::sqrt(cells * p * (1 - p)));
    }
  }
  CHECK(SparsityPattern::parse("pairs_0_1", 50, 50).nnz() == 0);
  CHECK(SparsityPattern::parse("pairs_100_1", 50, 50).nnz() == 2500);
  CHECK_FALSE(SparsityPattern::parse("pairs_50_1", 50, 50) ==
              SparsityPattern::parse("pairs_50_2", 50, 50));
}

// Draws are part of problem strings: other bits would change what a certificate reproduces.
TEST_CASE("draws of a seed, pinned", "[sparsity]") {
  CHECK(drawn("pairs_40_7", 3, 12) == "101100100000\n000001010110\n100100001101\n");
  CHECK(drawn("nm_2_4_7", 3, 12) == "001101101001\n110010100101\n011010010110\n");
}

TEST_CASE("long sequences take the memory of the form", "[sparsity]") {
  constexpr std::int64_t kLong = 1 << 20;
  const auto butterfly = SparsityPattern::parse("butterfly_64", kLong, kLong);
  CHECK(butterfly.nnz() == (kLong / 64) * 15 * 64 * 64);
  const auto window = SparsityPattern::parse("global_1_3_0", kLong, kLong);
  CHECK(window.nnz() == kLong + (2 + 3 + 4) + (kLong - 4) * 5);  // rows 0, then 1 to 3, the rest
  CHECK_THROWS_WITH(SparsityPattern::parse("pairs_50_1", kLong, kLong), Catch::Contains("2^29"));
  CHECK_THROWS_WITH(SparsityPattern::parse("blockband_1_9999", kLong, kLong),
                    Catch::Contains("2^29"));
  CHECK_THROWS_WITH(SparsityPattern::parse("dilated_inf_0_2", kLong, kLong),
                    Catch::Contains("2^29"));
  CHECK_THROWS_WITH(SparsityPattern::parse("nm_128_256_1", kLong, kLong), Catch::Contains("2^29"));
  CHECK_THROWS_WITH(SparsityPattern::parse("columns_50_1", kLong, kLong), Catch::Contains("2^29"));
}

TEST_CASE("canonical spellings of patterns round trip", "[sparsity]") {
  for (const char* spelling :
       {"block_3x5_40_1", "block_4x4_0.5_1", "blockband_2x2_1", "butterfly_4x2",
        "documents_2_0x1_2", "rows_50_1", "columns_12.25_1", "dilated_1_2_3", "dilated_inf_inf_2",
        "global_1_2_inf", "nm_1_4_9", "pairs_0.01_3", "pairs_100_3"}) {
    const auto pattern = SparsityPattern::parse(spelling, 4, 5);
    CHECK(pattern.spelling() == spelling);
    CHECK(SparsityPattern::parse(pattern.spelling(), 4, 5) == pattern);
  }
  CHECK(SparsityPattern::parse("block_64_10.0_007", 4, 5).spelling() == "block_64x64_10_7");
  CHECK(SparsityPattern::parse("pairs_-0_1", 4, 5).spelling() == "pairs_0_1");
  CHECK(SparsityPattern::parse("documents_4x5", 4, 5).spelling() == "documents_4x5");
}

TEST_CASE("impossible patterns are refused", "[sparsity]") {
  for (const char* spelling : {"",
                               "block",
                               "block_4x4",
                               "block_4x4_10",
                               "block_0x4_10_1",
                               "block_4x4x4_10_1",
                               "block_4x4_101_1",
                               "block_4x4_0.001_1",
                               "block_4x4_nan_1",
                               "block_4x4_1e1_1",
                               "block_4x4_10_x",
                               "block_4x4_10_1_1",
                               "blockband_4x4",
                               "butterfly_0",
                               "butterfly_-1",
                               "documents",
                               "documents_4",
                               "documents_x",
                               "rows_10",
                               "rows_10_-1",
                               "columns_x_1",
                               "dilated_1_1",
                               "dilated_1_1_0",
                               "dilated_x_1_1",
                               "global_1_1",
                               "nm_0_4_1",
                               "nm_5_4_1",
                               "nm_1_257_1",
                               "nm_1_4",
                               "pairs",
                               "pairs_1_99999999999",
                               "pattern",
                               "random_10_1",
                               "pattern_x.txt"}) {
    INFO(spelling);
    CHECK_THROWS_AS(SparsityPattern::parse(spelling, 4, 5), InvalidProblem);
  }
  CHECK_THROWS_WITH(SparsityPattern::parse("blokc_4x4_10_1", 4, 5),
                    Catch::Contains("did you mean 'block'"));
  CHECK_THROWS_WITH(SparsityPattern::parse("block_4x4", 4, 5),
                    Catch::Contains("is not block_QxK_PERCENT_SEED"));
  CHECK_THROWS_WITH(
      SparsityPattern::parse("documents_3_2", 4, 5),
      Catch::Contains("more than 4 queries") && Catch::Contains("seqlen_q x seqlen_k is 4x5"));
  CHECK_THROWS_WITH(SparsityPattern::parse("documents_3_1", 4, 5),
                    Catch::Contains("documents of 4x4") && Catch::Contains("is 4x5"));
  CHECK_THROWS_WITH(SparsityPattern::parse("pairs_1_1", -1, 5), Catch::Contains("extents"));
}

TEST_CASE("patterns that are drawn are patterns, of every family but files", "[sparsity]") {
  std::set<std::string> met;
  Rng rng(1);
  for (int draw = 0; draw < 500; ++draw) {
    const std::int64_t rows = rng.between(0, 40), columns = rng.between(0, 40);
    const std::string spelling = SparsityPattern::draw(rng, rows, columns);
    CHECK_NOTHROW(SparsityPattern::parse(spelling, rows, columns));
    met.insert(spelling.substr(0, spelling.find('_')));
  }
  for (const SparsityPattern::Family& family : SparsityPattern::families()) {
    INFO(family.name);
    CHECK((met.count(family.name) == 1) == (family.name != "pattern"));
  }
}

}  // namespace
}  // namespace attest
