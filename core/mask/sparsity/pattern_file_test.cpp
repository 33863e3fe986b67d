#include "core/mask/sparsity/pattern_file.hpp"

#include <sys/stat.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "core/error.hpp"
#include "core/files/safetensors.hpp"
#include "core/testing/catch.hpp"

namespace attest {
namespace {

// A file that is gone at the end.
class File {
 public:
  File(std::string path, const std::string& bytes) : path_(std::move(path)) {
    std::ofstream(path_, std::ios::binary) << bytes;
  }
  ~File() { std::remove(path_.c_str()); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

 private:
  std::string path_;
};

constexpr const char* kJson = "pattern_file_test.json";
constexpr const char* kTensors = "pattern_file_test.safetensors";

TEST_CASE("round trip through both kinds of files", "[sparsity]") {
  for (const char* spelling : {"block_3x5_40_1", "butterfly_2", "nm_2_4_1", "pairs_20_1",
                               "pairs_0_1", "global_1_2_0", "rows_30_2"}) {
    for (const auto& [rows, columns] : {std::pair{17, 23}, std::pair{0, 4}, std::pair{4, 0}}) {
      const auto pattern = SparsityPattern::parse(spelling, rows, columns);
      INFO(spelling);
      const File json(kJson, pattern_json(pattern)),
          tensors(kTensors, pattern_safetensors(pattern));
      for (const std::string path : {kJson, kTensors}) {
        const SparsityPattern again = read_pattern_file(path);
        CHECK(again == pattern);
        CHECK(again.spelling() == "pattern_" + path);
        CHECK(SparsityPattern::parse("pattern_" + path, rows, columns) == pattern);
        const auto blocks_or_nm = [](const SparsityPattern& of) {
          return std::pair(std::holds_alternative<BlockForm>(of.form()),
                           std::holds_alternative<NmForm>(of.form()));
        };
        CHECK(blocks_or_nm(again) == blocks_or_nm(pattern));
      }
    }
  }
}

TEST_CASE("files written by hand", "[sparsity]") {
  const File json(kJson,
                  R"({"shape":[3,4],"block":[2,3],"row_offsets":[0,1,3],"columns":[1,0,1]})");
  const SparsityPattern pattern = read_pattern_file(kJson);
  CHECK(pattern.to_boolean() == std::vector<std::uint8_t>{0, 0, 0, 1, 0, 0, 0, 1, 1, 1, 1, 1});
  CHECK_THROWS_WITH(SparsityPattern::parse("pattern_" + std::string(kJson), 3, 5),
                    Catch::Contains("is 3x4, but seqlen_q x seqlen_k is 3x5"));
  // A row may keep no key of its second group, which is cut after one key.
  const File groups(kTensors,
                    pattern_safetensors(SparsityPattern(2, 4, NmForm{1, 3, {2, 0, 0, 1}}, "x")));
  CHECK(read_pattern_file(kTensors).to_boolean() ==
        std::vector<std::uint8_t>{0, 0, 1, 1, 1, 0, 0, 0});
  const File same(kJson, R"({"shape":[2,4],"group":[1,3],"offsets":[2,0,0,1]})");
  CHECK(read_pattern_file(kJson) == read_pattern_file(kTensors));
}

TEST_CASE("small malformed files take no stack and no memory", "[sparsity]") {
  const std::string deep(200000, '[');
  {
    const File file(kJson, R"({"columns":)" + deep + std::string(deep.size(), ']') + "}");
    CHECK_THROWS_WITH(read_pattern_file(kJson), Catch::Contains("is nested more than 64 deep"));
  }
  const File file(kJson, R"({"shape":[2147483647,2147483647],"block":[2147483647,2147483647],)"
                         R"("row_offsets":[0,1],"columns":[0]})");
  CHECK_THROWS_WITH(SparsityPattern::parse("pattern_" + std::string(kJson), 3, 3),
                    Catch::Contains("is 2147483647x2147483647, but seqlen_q x seqlen_k is 3x3"));
}

TEST_CASE("malformed files in JSON are refused with the place", "[sparsity]") {
  const auto refused = [](const std::string& text, const std::string& why) {
    INFO(text);
    const File file(kJson, text);
    CHECK_THROWS_WITH(read_pattern_file(kJson), Catch::Contains(kJson) && Catch::Contains(why));
    CHECK_THROWS_AS(read_pattern_file(kJson), InvalidProblem);
  };
  const auto csr = [](const std::string& shape, const std::string& offsets,
                      const std::string& columns) {
    return R"({"shape":)" + shape + R"(,"row_offsets":)" + offsets + R"(,"columns":)" + columns +
           "}";
  };
  refused("", "is not JSON");
  refused("{", "is not JSON");
  refused("[1]", "no JSON object");
  refused(R"({"shape":[2,3],"shape":[2,4],"row_offsets":[0,0,0],"columns":[]})", "'shape' twice");
  refused(R"({"shape":[2,3],"row_offsets":[0,0,0]})", "has no list 'columns'");
  refused(R"({"shape":[2,3],"rows":[]})", "has a list 'rows'");
  refused(csr("[2]", "[0,0,0]", "[]"), "'shape' has 1 numbers");
  refused(csr("3", "[0,0,0]", "[]"), "'shape' is not a list");
  refused(csr("[2,3]", "[0,1,1]", "[0.5]"), "columns[0] is 0.5; indices are integers");
  refused(csr("[2,3]", "[0,1,1]", R"(["1"])"), "columns[0] is \"1\"; indices are integers");
  refused(csr("[2,3]", "[0,1,1]", "[18446744073709551615]"), "integers of 64 bits");
  refused(csr("[2,3]", "[0,1,1]", "[-9223372036854775809]"), "integers of 64 bits");
  refused(csr("[2,3]", "[0,1,1]", "[4294967296]"), "columns[0] is 4294967296, beyond");
  refused(csr("[2,3]", "[0,1,1]", "[3]"), "columns[0] of row 0 is 3; keys go from 0 to 2");
  refused(csr("[2,3]", "[0,2,2]", "[1,0]"), "comes after 1");
  refused(csr("[2,3]", "[0,2,2]", "[1,1]"), "is there twice");
  refused(csr("[2,3]", "[0,2]", "[1,2]"), "row_offsets has 2 entries");
  refused(csr("[2,3]", "[0,1,1]", "[1,2]"), "ends at 1, but there are 2 columns");
  refused(csr("[-2,3]", "[0]", "[]"), "extents go from 0");
  refused(R"({"shape":[2,3],"block":[0,1],"row_offsets":[0],"columns":[]})", "both sizes");
  const auto nm = [](const std::string& group, const std::string& offsets) {
    return R"({"shape":[2,3],"group":)" + group + R"(,"offsets":)" + offsets + "}";
  };
  refused(R"({"shape":[2,3],"group":[1,3]})", "has no list 'offsets'");
  refused(R"({"shape":[2,3],"offsets":[1,1]})", "has no list 'group'");
  refused(R"({"shape":[2,3],"group":[1,3],"offsets":[1,1],"columns":[]})",
          "has a list 'group' of N:M patterns and a list 'columns' of others; leave one out");
  refused(R"({"shape":[2,3],"offsets":[1,1],"row_offsets":[0,0,0]})",
          "has a list 'offsets' of N:M patterns and a list 'row_offsets' of others");
  refused(nm("[3]", "[1,1]"), "'group' has 1 numbers; it needs two");
  refused(nm("[4,3]", "[1,1]"), "must be N of M with 1 <= N <= M <= 256");
  refused(nm("[1,300]", "[1,1]"), "must be N of M with 1 <= N <= M <= 256");
  refused(nm("[1,3]", "[1]"), "has 1 offsets; it needs 2 rows x 1 groups x 1");
  refused(nm("[1,3]", "[1,3]"), "offsets[1] is 3; offsets must be below 3");
  refused(nm("[1,3]", "[1,256]"), "offsets[1] is 256, beyond 0 .. 255");
  refused(nm("[1,3]", "[1,-1]"), "offsets[1] is -1, beyond 0 .. 255");
  refused(nm("[2,3]", "[1,1,0,1]"), "offsets[1] is 1 after 1; offsets of a group must ascend");
}

TEST_CASE("what a file holds is shown in part", "[sparsity]") {
  const std::string large(100000, 'x');
  for (const std::string& text :
       {R"({"columns":[")" + large + R"("]})", R"({")" + large + R"(":[]})",
        R"({"shape":[1,1],")" + large + R"(":[],")" + large + R"(":[]})", "{\"" + large}) {
    const File file(kJson, text);
    std::string message;
    try {
      read_pattern_file(kJson);
    } catch (const InvalidProblem& refused) {
      message = refused.what();
    }
    CHECK_THAT(message, Catch::Contains("xxx"));
    CHECK(message.size() < 400);
  }
  const File file(kJson, R"({"a\nb":[],"a\nb":[]})");
  CHECK_THROWS_WITH(read_pattern_file(kJson), Catch::Contains("has 'a?b' twice"));
}

TEST_CASE("a file that is too large to be read is refused as such", "[sparsity]") {
  const File file(kJson, "{}");
  std::filesystem::resize_file(kJson, (std::uintmax_t{1} << 32) + 1);  // without its blocks
  CHECK_THROWS_WITH(read_pattern_file(kJson), Catch::Contains("has 4294967297 bytes; files of up"));
}

TEST_CASE("malformed files in safetensors are refused with the place", "[sparsity]") {
  const auto refused = [](const std::string& bytes, const std::string& why) {
    const File file(kTensors, bytes);
    CHECK_THROWS_WITH(read_pattern_file(kTensors),
                      Catch::Contains(kTensors) && Catch::Contains(why));
    CHECK_THROWS_AS(read_pattern_file(kTensors), InvalidProblem);
  };
  const std::string whole = pattern_safetensors(SparsityPattern::parse("pairs_50_1", 4, 5));
  for (std::size_t length = 0; length < whole.size(); ++length) {
    refused(whole.substr(0, length), "");
  }
  StoredTensors file = parse_stored_tensors(whole, "x");
  file.tensors["columns"].dtype = "F64";
  refused(write_safetensors(file), "tensor 'columns' has dtype F64; it needs I32 or I64");
  file = parse_stored_tensors(whole, "x");
  file.tensors["shape"].shape = {2, 1};
  refused(write_safetensors(file), "tensor 'shape' has 2 axes");
  file = parse_stored_tensors(whole, "x");
  file.tensors["columns"] = file.tensors["row_offsets"];
  refused(write_safetensors(file), "there are 5 columns");
  file = parse_stored_tensors(whole, "x");
  file.tensors["other"] = file.tensors["shape"];
  refused(write_safetensors(file), "has a list 'other'");
}

TEST_CASE("indices of 32 bits are read too", "[sparsity]") {
  const std::string shape("\2\0\0\0\3\0\0\0", 8), offsets("\0\0\0\0\1\0\0\0\1\0\0\0", 12),
      columns("\2\0\0\0", 4);
  StoredTensors tensors;
  tensors.tensors = {{"shape", {"I32", {2}, shape}},
                     {"row_offsets", {"I32", {3}, offsets}},
                     {"columns", {"I32", {1}, columns}}};
  const File file(kTensors, write_safetensors(tensors));
  CHECK(read_pattern_file(kTensors) == SparsityPattern(2, 3, CsrForm{{0, 1, 1}, {2}}, "x"));
}

TEST_CASE("a pattern is read from a regular file of a known kind only", "[sparsity]") {
  CHECK_THROWS_WITH(read_pattern_file("pattern.csr"), Catch::Contains("must end in .json"));
  CHECK_THROWS_WITH(read_pattern_file(""), Catch::Contains("needs the path of a .json"));
  CHECK_THROWS_WITH(read_pattern_file("missing.json"), Catch::Contains("cannot read file"));
  const std::string pipe = "pattern_file_test_pipe.json";
  std::remove(pipe.c_str());
  REQUIRE(mkfifo(pipe.c_str(), S_IRUSR | S_IWUSR) == 0);
  CHECK_THROWS_WITH(read_pattern_file(pipe), Catch::Contains("not a regular file"));
  std::remove(pipe.c_str());
}

}  // namespace
}  // namespace attest
