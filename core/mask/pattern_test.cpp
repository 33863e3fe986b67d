#include "core/mask/pattern.hpp"

#include <sys/stat.h>

#include <cstdio>
#include <fstream>

#include "core/error.hpp"
#include "core/mask/mask_shape.hpp"
#include "core/mask/sparsity/sparsity_pattern.hpp"
#include "core/testing/catch.hpp"

namespace attest {
namespace {

Sequence sequence_of(std::int64_t queries, std::int64_t keys) {
  Sequence sequence;
  sequence.q_length = queries;
  sequence.k_length = sequence.visible_keys = keys;
  return sequence;
}

// The rows of a mask as text, one character per key.
std::string drawn(const std::string& spelling, const Sequence& sequence) {
  const Pattern pattern = Pattern::parse(spelling, sequence.q_length, sequence.k_length);
  std::string text;
  for (std::int64_t i = 0; i < sequence.q_length; ++i) {
    for (std::int64_t j = 0; j < sequence.k_length; ++j) {
      text += pattern.visible(sequence, i, j) ? '1' : '0';
    }
    text += '\n';
  }
  return text;
}

TEST_CASE("bands in both alignments", "[pattern]") {
  CHECK(drawn("none", sequence_of(2, 3)) == "111\n111\n");
  CHECK(drawn("causal_tl", sequence_of(2, 4)) == "1000\n1100\n");
  CHECK(drawn("causal_br", sequence_of(2, 4)) == "1110\n1111\n");
  CHECK(drawn("causal_br", sequence_of(3, 2)) == "00\n10\n11\n");
  CHECK(drawn("causal_tl", sequence_of(3, 2)) == "10\n11\n11\n");
  CHECK(drawn("window_1_0", sequence_of(2, 4)) == "0110\n0011\n");
  CHECK(drawn("window_tl_1_0", sequence_of(2, 4)) == "1000\n1100\n");
  CHECK(drawn("window_0_inf", sequence_of(2, 4)) == "0011\n0001\n");
  CHECK(drawn("window_4611686018427387904_0", sequence_of(2, 2)) == "10\n11\n");
  // Both ends on one side, an end of its own for none, ends that pass each other.
  CHECK(drawn("window_tl_-1_2", sequence_of(2, 4)) == "0110\n0011\n");
  CHECK(drawn("window_tl_1_-1", sequence_of(3, 4)) == "0000\n1000\n0100\n");
  CHECK(drawn("window_tl_inf_-1", sequence_of(3, 4)) == "0000\n1000\n1100\n");
  CHECK(drawn("window_tl_-2_inf", sequence_of(2, 4)) == "0011\n0001\n");
  CHECK(drawn("window_7_-8", sequence_of(2, 4)) == "0000\n0000\n");
  CHECK(drawn("window_-4611686018427387904_inf", sequence_of(1, 2)) == "00\n");
  CHECK(drawn("window_inf_-4611686018427387904", sequence_of(1, 2)) == "00\n");
}

TEST_CASE("key lengths move the bottom-right corner", "[pattern]") {
  Sequence sequence = sequence_of(2, 5);
  sequence.visible_keys = 3;
  CHECK(drawn("lengths_3", sequence) == "11100\n11100\n");
  CHECK(drawn("lengths_3+causal_br", sequence) == "11000\n11100\n");
  CHECK(drawn("lengths_3+causal_tl", sequence) == "10000\n11000\n");
}

TEST_CASE("a boolean mask removes pairs from the band", "[pattern]") {
  const Sequence sequence = sequence_of(16, 16);
  const std::string random = drawn("random_50_1", sequence);
  const std::string causal = drawn("causal_tl", sequence);
  const std::string both = drawn("random_50_1+causal_tl", sequence);
  std::string expected = random;
  for (std::size_t at = 0; at < random.size(); ++at) {
    if (causal[at] == '0') expected[at] = '0';
  }
  CHECK(both == expected);
  CHECK(random != drawn("random_50_2", sequence));
  CHECK(drawn("random_0_1", sequence).find('1') == std::string::npos);
  CHECK(drawn("random_100_1", sequence).find('0') == std::string::npos);
}

TEST_CASE("sparse patterns are boolean masks with a compressed form", "[pattern]") {
  const Sequence sequence = sequence_of(13, 11);
  for (const std::string spelling : {"block_3x2_50_1", "nm_2_4_1", "pairs_30_1", "global_1_2_0"}) {
    const Pattern pattern = Pattern::parse(spelling + "+causal_tl", 13, 11);
    REQUIRE(pattern.sparsity() != nullptr);
    CHECK(*pattern.sparsity() == SparsityPattern::parse(spelling, 13, 11));
    CHECK(pattern.boolean->visible == pattern.sparsity()->to_boolean());
    CHECK(pattern.to_string() == "causal_tl+" + spelling);
    for (std::int64_t i = 0; i < 13; ++i) {
      for (std::int64_t j = 0; j < 11; ++j) {
        CHECK(pattern.visible(sequence, i, j) == (j <= i && pattern.sparsity()->contains(i, j)));
      }
    }
  }
  CHECK(Pattern::parse("random_50_1", 13, 11).sparsity() == nullptr);
  CHECK(Pattern::parse("causal_tl", 13, 11).sparsity() == nullptr);
  CHECK_THROWS_WITH(Pattern::parse("butterfly_64", 1 << 17, 1 << 17), Catch::Contains("2^31"));
}

TEST_CASE("masks of pairs are limited in queries and keys", "[pattern]") {
  constexpr std::int64_t kLongest = std::int64_t{1} << 24;
  CHECK(Pattern::parse("blockband_16777216x1_0", kLongest, 1).sparsity() != nullptr);
  for (const char* mask : {"blockband_16777216x1_0", "random_50_1"}) {
    CHECK_THROWS_WITH(Pattern::parse(mask, kLongest + 1, 1), Catch::Contains("2^24"));
    CHECK_THROWS_WITH(Pattern::parse(mask, 1, kLongest + 1), Catch::Contains("2^24"));
  }
}

TEST_CASE("canonical spellings round trip", "[pattern]") {
  for (const char* spelling :
       {"none", "causal_tl", "causal_br", "window_3_0", "window_tl_inf_5", "window_-1_3",
        "window_tl_inf_-1", "window_2_inf", "lengths_3_4", "cu_3x5_0x7", "random_30_7",
        "cu_2x2_2x2+causal_br", "lengths_3_4+window_1_1+random_50_9", "block_2x3_50_1",
        "causal_br+pairs_12.5_1", "documents_4x5"}) {
    CHECK(Pattern::parse(spelling, 4, 5).to_string() == spelling);
  }
  CHECK(Pattern::parse("window_tl_inf_0", 4, 4).to_string() == "causal_tl");
  CHECK(Pattern::parse("window_inf_inf", 4, 4).to_string() == "none");
}

TEST_CASE("masks from files", "[pattern]") {
  const std::string path = "pattern_test_mask.txt";
  std::ofstream(path) << "101\n011\n";
  CHECK(drawn("file_" + path, sequence_of(2, 3)) == "101\n011\n");
  std::ofstream(path, std::ios::binary) << "101\r\n011\r\n";
  CHECK(drawn("file_" + path, sequence_of(2, 3)) == "101\n011\n");
  std::ofstream(path, std::ios::binary) << "101\r\n011\r";
  CHECK(drawn("file_" + path, sequence_of(2, 3)) == "101\n011\n");
  std::ofstream(path, std::ios::binary) << "10\r1\n011\n";
  CHECK_THROWS_WITH(Pattern::parse("file_" + path, 2, 3), Catch::Contains("more than 3"));
  std::ofstream(path) << "101\n011\n";
  CHECK_THROWS_WITH(Pattern::parse("file_" + path, 2, 4),
                    Catch::Contains("row 0 has 3 characters"));
  CHECK_THROWS_WITH(Pattern::parse("file_" + path, 3, 3), Catch::Contains("2 rows"));
  CHECK_THROWS_WITH(Pattern::parse("file_" + path, 2, 2),
                    Catch::Contains("row 0 has more than 2 characters"));
  CHECK_THROWS_WITH(Pattern::parse("file_" + path, 1, 3), Catch::Contains("more than 1 rows"));
  std::ofstream(path) << std::string(1000000, '1');  // one row without end is not read to its end
  CHECK_THROWS_WITH(Pattern::parse("file_" + path, 2, 3),
                    Catch::Contains("row 0 has more than 3 characters"));
  std::ofstream(path) << "101\n011";
  CHECK(drawn("file_" + path, sequence_of(2, 3)) == "101\n011\n");
  std::ofstream(path) << "1x1\n011\n";
  CHECK_THROWS_WITH(Pattern::parse("file_" + path, 2, 3),
                    Catch::Contains("row 0, character 1: 'x' is neither 0 nor 1"));
  std::remove(path.c_str());
  CHECK_THROWS_WITH(Pattern::parse("file_" + path, 2, 3), Catch::Contains("cannot read"));
}

TEST_CASE("sizes that a mask fixes", "[pattern]") {
  std::ofstream("pattern_test_sizes.txt") << "010\n111\n000";
  std::ofstream("pattern_test_sizes_crlf.txt", std::ios::binary) << "010\r\n111\r\n";
  CHECK(shape_of_mask("file_pattern_test_sizes_crlf.txt") == PatternShape{2, 3});
  std::remove("pattern_test_sizes_crlf.txt");
  std::ofstream("pattern_test_sizes.json")
      << R"({"shape": [2, 5], "row_offsets": [0, 1, 1], "columns": [4]})";
  CHECK(shape_of_mask("file_pattern_test_sizes.txt") == PatternShape{3, 3});
  CHECK(shape_of_mask("causal_br+pattern_pattern_test_sizes.json") == PatternShape{2, 5});
  CHECK(shape_of_mask("documents_5_2x3") == PatternShape{7, 8});
  for (const char* text : {"none", "causal_br", "block_4_50_1+window_3_0", "random_30_1"}) {
    CHECK_FALSE(shape_of_mask(text));
  }
  CHECK_THROWS_AS(shape_of_mask("file_of_nothing.txt"), InvalidProblem);
  CHECK_THROWS_AS(shape_of_mask("pattern_of_nothing.json"), InvalidProblem);
  std::remove("pattern_test_sizes.txt");
  std::remove("pattern_test_sizes.json");
}

TEST_CASE("a mask is read from a regular file only", "[pattern]") {
  CHECK_THROWS_WITH(Pattern::parse("file_.", 2, 3), Catch::Contains("'.' is a directory"));
  const std::string pipe = "pattern_test_pipe";
  std::remove(pipe.c_str());
  REQUIRE(mkfifo(pipe.c_str(), S_IRUSR | S_IWUSR) == 0);
  CHECK_THROWS_WITH(Pattern::parse("file_" + pipe, 2, 3), Catch::Contains("not a regular file"));
  std::remove(pipe.c_str());
}

TEST_CASE("impossible masks are refused", "[pattern]") {
  for (const char* spelling : {"",
                               "causal",
                               "window_3",
                               "window_a_1",
                               "window_--1_0",
                               "window_-_0",
                               "window_-inf_0",
                               "window_0_4611686018427387905",
                               "window_0_-9223372036854775808",
                               "window_tl_1",
                               "lengths",
                               "lengths_x",
                               "cu_3",
                               "cu_3x",
                               "cu_3x99999999999",
                               "random_101_1",
                               "random_5",
                               "none+causal_tl",
                               "block_2x3_50",
                               "nm_5_4_1",
                               "random_1_1+pairs_1_1",
                               "rows_1_1+columns_1_1",
                               "documents_3_2",
                               "causal_tl+causal_br",
                               "lengths_1+lengths_2",
                               "random_1_1+random_2_2",
                               "causal_tl+",
                               "cu"}) {
    INFO(spelling);
    CHECK_THROWS_AS(Pattern::parse(spelling, 4, 4), InvalidProblem);
  }
  CHECK_THROWS_WITH(Pattern::parse("window_3_x", 4, 4),
                    Catch::Contains("needs inf or an integer from -2^62 to 2^62 where 'x' stands"));
  CHECK_THROWS_WITH(Pattern::parse("causl_tl", 4, 4), Catch::Contains("did you mean 'causal_tl'"));
  CHECK_THROWS_WITH(
      Pattern::parse("buterfly_64", 4, 4),
      Catch::Contains("did you mean 'butterfly'") && Catch::Contains("documents_5_7_3"));
}

}  // namespace
}  // namespace attest
