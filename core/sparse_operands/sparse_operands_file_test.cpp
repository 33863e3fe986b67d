#include "core/sparse_operands/sparse_operands_file.hpp"

#include <sys/stat.h>

#include <cstdio>
#include <fstream>
#include <functional>
#include <limits>

#include "core/error.hpp"
#include "core/files/safetensors.hpp"
#include "core/testing/catch.hpp"

namespace attest {
namespace {

constexpr const char* kPath = "sparse_operands_file_test.safetensors";
constexpr const char* kProblem = "sq=3,sk=2,d=4,dv=2";

// A file that is gone at the end.
class File {
 public:
  explicit File(const std::string& bytes) { std::ofstream(kPath, std::ios::binary) << bytes; }
  ~File() { std::remove(kPath); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
};

SparseOperands operands() {
  return {{3, 4, {0, 2, 2, 3}, {0, 3, 1}, {1, -2, 0}},  // an empty row, and an entry that holds 0
          {2, 4, {0, 1, 3}, {3, 0, 1}, {0.5f, 1, 4}},
          {2, 2, {0, 1, 1}, {1}, {3}},
          0.5};
}

SparseOperands read(const char* problem = kProblem) {
  return read_sparse_operands(kPath, Problem::parse(problem));
}

template <class Element>
std::string bytes_of(const std::vector<Element>& elements) {
  return {reinterpret_cast<const char*>(elements.data()), elements.size() * sizeof(Element)};
}

TEST_CASE("round trip of sparse inputs through a file", "[sparse][safetensors]") {
  const SparseOperands written = operands();
  const File file(sparse_operands_safetensors(written));
  const SparseOperands again = read();
  CHECK(again.Q == written.Q);
  CHECK(again.K == written.K);
  CHECK(again.V == written.V);
  CHECK(again.softmax_scale == 0.5);
  CHECK(read("sq=3,sk=2,d=4,dv=2,scale=-3").softmax_scale == -3);
}

TEST_CASE("offsets of 32 bits and columns of 64 are read too", "[sparse][safetensors]") {
  const std::string whole = sparse_operands_safetensors(operands());
  StoredTensors stored = parse_stored_tensors(whole, "x");
  const std::string offsets = bytes_of<std::int32_t>({0, 2, 2, 3});
  const std::string columns = bytes_of<std::int64_t>({0, 3, 1});
  stored.tensors["Q.row_offsets"] = {"I32", {4}, offsets};
  stored.tensors["Q.columns"] = {"I64", {3}, columns};
  const File file(write_safetensors(stored));
  CHECK(read().Q == operands().Q);
}

std::string without_shapes() {
  const std::string whole = sparse_operands_safetensors(operands());
  StoredTensors stored = parse_stored_tensors(whole, "x");
  for (const char* name : {"Q.shape", "K.shape", "V.shape"}) stored.tensors.erase(name);
  return write_safetensors(stored);
}

TEST_CASE("without shapes a file has the columns of the problem", "[sparse][safetensors]") {
  const File file(without_shapes());
  CHECK(read().Q == operands().Q);
  CHECK(read("sq=3,sk=2,d=9,dv=7").V.columns == 7);
  CHECK_THROWS_WITH(read("sq=3,sk=2,d=3,dv=2"),
                    Catch::Contains("Q: columns[1] is 3, but columns go from 0 to 2"));
  CHECK_THROWS_WITH(read("sq=3,sk=2,d=4,dv=1"),
                    Catch::Contains("V: columns[0] is 1, but columns go from 0 to 0"));
}

TEST_CASE("malformed files of sparse inputs are refused with the place", "[sparse][safetensors]") {
  const std::string whole = sparse_operands_safetensors(operands());
  const auto refused = [](const std::string& bytes, const std::string& why,
                          const char* problem = kProblem) {
    INFO(why);
    const File file(bytes);
    CHECK_THROWS_WITH(read(problem), Catch::Contains(kPath) && Catch::Contains(why));
    CHECK_THROWS_AS(read(problem), InvalidProblem);
  };
  const auto changed = [&](const std::function<void(StoredTensors&)>& change,
                           const std::string& why) {
    StoredTensors stored = parse_stored_tensors(whole, "x");
    change(stored);
    refused(write_safetensors(stored), why);
  };
  for (std::size_t length = 0; length < whole.size(); ++length) {
    refused(whole.substr(0, length), "");
  }
  refused(whole + "x", "bytes follow the last tensor");
  refused(whole, "Q.row_offsets has 4 entries, of 3 rows, but sq is 4", "sq=4,sk=2,d=4,dv=2");
  refused(whole, "K.row_offsets has 3 entries, of 2 rows, but sk is 3", "sq=3,sk=3,d=4,dv=2");
  refused(whole, "Q.shape is [3, 4], but sq is 3 and d is 5; pass the sizes", "sq=3,sk=2,d=5,dv=2");
  refused(whole, "V.shape is [2, 2], but sk is 2 and dv is 3", "sq=3,sk=2,d=4,dv=3");
  changed([](StoredTensors& s) { s.tensors["K.shape"] = s.tensors["V.columns"]; },
          "K.shape is [1], but sk is 2 and d is 4");
  changed([](StoredTensors& s) { s.tensors["K.shape"].dtype = "F64"; },
          "tensor 'K.shape' has dtype F64; it needs I32 or I64");
  changed([](StoredTensors& s) { s.tensors.erase("K.values"); }, "has no tensor 'K.values'");
  changed([](StoredTensors& s) { s.tensors["dO.values"] = s.tensors["Q.values"]; },
          "has a tensor 'dO.values'; of each of Q, K and V");
  changed([](StoredTensors& s) { s.tensors["V.values"].dtype = "I32"; },
          "tensor 'V.values' has dtype I32; it needs F32");
  changed([](StoredTensors& s) { s.tensors["V.columns"].dtype = "F32"; },
          "tensor 'V.columns' has dtype F32; it needs I32 or I64");
  changed([](StoredTensors& s) { s.tensors["Q.row_offsets"].dtype = "U64"; },
          "tensor 'Q.row_offsets' has dtype U64; it needs I32 or I64");
  changed(
      [](StoredTensors& s) {
        s.tensors["Q.columns"].shape = {3, 1};
      },
      "tensor 'Q.columns' has 2 axes; it needs one");
  changed(
      [](StoredTensors& s) {
        s.tensors["Q.row_offsets"] = {"I64", {0}, ""};
      },
      "Q.row_offsets is empty");
  changed([](StoredTensors& s) { s.tensors["K.columns"] = s.tensors["V.columns"]; },
          "K: 1 columns, but 3 values");
}

TEST_CASE("lists in a file that are no matrix are refused with the place",
          "[sparse][safetensors]") {
  const std::string whole = sparse_operands_safetensors(operands());
  const auto refused = [&](const char* name, const char* dtype, const std::string& bytes,
                           const std::string& why) {
    INFO(why);
    StoredTensors stored = parse_stored_tensors(whole, "x");
    stored.tensors[name].dtype = dtype;
    stored.tensors[name].bytes = bytes;
    const File file(write_safetensors(stored));
    CHECK_THROWS_WITH(read(), Catch::Contains(kPath) && Catch::Contains(why));
    CHECK_THROWS_AS(read(), InvalidProblem);
  };
  const auto columns = [&](const std::vector<std::int32_t>& list, const std::string& why) {
    refused("K.columns", "I32", bytes_of(list), why);
  };
  columns({3, 0, 4}, "K: columns[2] is 4, but columns go from 0 to 3");
  columns({3, 0, -1}, "K.columns[2] is -1; columns count from 0");
  columns({3, 1, 0}, "K: columns[2] is 0 after 1 in row 1; sort the columns");
  columns({3, 1, 1}, "K: columns[2] is 1 after 1 in row 1; sort the columns");
  refused("K.columns", "I64", bytes_of<std::int64_t>({3, 0, std::int64_t{1} << 32}),
          "K.columns[2] is 4294967296; columns count from 0 and stay below 2^31");
  const auto offsets = [&](const std::vector<std::int64_t>& list, const std::string& why) {
    refused("K.row_offsets", "I64", bytes_of(list), why);
  };
  offsets({1, 1, 3}, "K: row_offsets[0] is 1; it must be 0");
  offsets({0, 3, 1}, "K: row_offsets[2] is 1, less than the 3 before it");
  offsets({0, 1, 4}, "K: row_offsets[2] is 4, but there are 3 values");
  offsets({0, std::numeric_limits<std::int64_t>::max(), 3}, "less than the");
  for (const float value :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    refused("K.values", "F32", bytes_of<float>({1, value, 2}), "K: values[1] is");
  }
}

TEST_CASE("sparse inputs are read from a regular file for a plain problem", "[sparse]") {
  CHECK_THROWS_WITH(read(), Catch::Contains("inputs: cannot read file"));
  CHECK_THROWS_WITH(read_sparse_operands(".", Problem::parse(kProblem)),
                    Catch::Contains("is a directory"));
  REQUIRE(mkfifo(kPath, S_IRUSR | S_IWUSR) == 0);
  CHECK_THROWS_WITH(read(), Catch::Contains("is not a regular file"));
  std::remove(kPath);
  const File file(sparse_operands_safetensors(operands()));
  CHECK_THROWS_WITH(read("sq=3,sk=2,d=4,dv=2,mask=causal_br"), Catch::Contains("without a mask"));
  CHECK_THROWS_WITH(read("sq=3,sk=99999999,d=4,dv=2"), Catch::Contains("at most 2^18"));
}

}  // namespace
}  // namespace attest
