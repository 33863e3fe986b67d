#include "certify/report/safetensors.hpp"

#include <cstdio>
#include <fstream>
#include <limits>

#include "core/error.hpp"
#include "core/testing/catch.hpp"

namespace attest::certify {
namespace {

std::string file_of(const std::string& header, const std::string& data = "") {
  std::string bytes;
  for (std::size_t k = 0; k < 8; ++k) {
    bytes += static_cast<char>((header.size() >> (8 * k)) & 0xffu);
  }
  return bytes + header + data;
}

TEST_CASE("round trip of every dtype, bit for bit", "[safetensors]") {
  TensorFile file;
  file.metadata = {{"problem", "v1;sq=2"}, {"text", "quotes \" and \\ and \n"}};
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16, DType::f16}) {
    Tensor tensor("x", dtype, {{"a", 2, 0}, {"b", 3, 0}});
    for (std::int64_t e = 0; e < 6; ++e) tensor.set(1.0 / static_cast<double>(e), e / 3, e % 3);
    tensor.set(std::numeric_limits<double>::quiet_NaN(), 1, 1);
    tensor.set(-0.0, 1, 2);
    file.tensors.emplace(std::string(name(dtype)), tensor);
  }
  file.tensors.emplace("none", Tensor("x", DType::f32, {{"a", 0, 0}, {"b", 3, 0}}));
  file.tensors.emplace("scalar", Tensor("x", DType::f32, {}));
  const TensorFile again = parse_safetensors(safetensors(file), "x");
  CHECK(again.metadata == file.metadata);
  REQUIRE(again.tensors.size() == file.tensors.size());
  for (const auto& [name, tensor] : file.tensors) {
    const TensorView &was = tensor.view(), &is = again.tensors.at(name).view();
    INFO(name);
    REQUIRE(is.dtype() == was.dtype());
    REQUIRE(is.rank() == was.rank());
    for (std::size_t axis = 0; axis < was.rank(); ++axis) {
      CHECK(is.extent(axis) == was.extent(axis));
    }
    for (std::int64_t e = 0; e < was.size(); ++e) {
      CHECK(is.bits(e / 3, e % 3) == was.bits(e / 3, e % 3));
    }
  }
  CHECK(safetensors(again) == safetensors(file));
}

// The bytes a reader of another language expects, spelled out.
TEST_CASE("one tensor, byte for byte", "[safetensors]") {
  TensorFile file;
  Tensor tensor("x", DType::f32, {{"a", 1, 0}});
  tensor.set(1.5, 0);
  file.tensors.emplace("x", tensor);
  const std::string header = R"({"x":{"data_offsets":[0,4],"dtype":"F32","shape":[1]}})";
  const std::string padded = header + std::string((8 - header.size() % 8) % 8, ' ');
  CHECK(safetensors(file) == file_of(padded, std::string("\0\0\xc0\x3f", 4)));
}

TEST_CASE("bad files are refused with what is wrong", "[safetensors]") {
  const auto refused = [](const std::string& bytes, const std::string& why) {
    INFO(bytes);
    CHECK_THROWS_WITH(parse_safetensors(bytes, "a.safetensors"),
                      Catch::StartsWith("file 'a.safetensors': ") && Catch::Contains(why));
    CHECK_THROWS_AS(parse_safetensors(bytes, "a.safetensors"), InvalidProblem);
  };
  const std::string four(4, '\0'), eight(8, '\0');
  const auto tensor = [](const std::string& dtype, const std::string& shape,
                         const std::string& offsets) {
    return R"("x":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets +
           "}";
  };
  refused("", "has 0 bytes");
  refused("1234567", "has 7 bytes");
  refused(file_of("{}").substr(0, 9), "should have 2 bytes, but 1 follow");
  refused(std::string(8, '\xff') + "{}", "18446744073709551615");
  refused(file_of(""), "does not begin with '{'");
  refused(file_of("[]"), "does not begin with '{'");
  refused(file_of("{]"), "is not JSON");
  refused(file_of("{} x"), "is not JSON");
  refused(file_of(R"({"a)"
                  "\xff"
                  R"(":1})"),
          "is not JSON");
  refused(file_of("{" + tensor("F32", "[1]", "[0,4]") + "," + tensor("F32", "[1]", "[4,8]") + "}",
                  eight),
          "'x' twice");
  refused(file_of(R"({"x":3})"), "not described by an object");
  refused(file_of(R"({"x":{"dtype":"F32","shape":[1]}})"), "has no 'data_offsets'");
  refused(file_of(R"({"x":{"dtype":"F32","shape":[0],"data_offsets":[0,0],"y":1}})"),
          "unknown field 'y'");
  refused(file_of("{" + tensor("I64", "[1]", "[0,8]") + "}", eight), "dtype 'I64' is not known");
  refused(file_of(R"({"x":{"dtype":3,"shape":[0],"data_offsets":[0,0]}})"), "not a word");
  refused(file_of("{" + tensor("F32", "[1,1,1,1,1]", "[0,4]") + "}", four), "at most four");
  refused(file_of("{" + tensor("F32", "4", "[0,4]") + "}", four), "not a list of sizes");
  refused(file_of("{" + tensor("F24", "[1]", "[0,3]") + "}", "abc"), "dtype 'F24' is not known");
  refused(file_of("{" + tensor("F32", "[-1]", "[0,4]") + "}", four), "not a whole number");
  refused(file_of("{" + tensor("F32", "[1.0]", "[0,4]") + "}", four), "not a whole number");
  refused(file_of("{" + tensor("F32", "[4294967296,4294967296]", "[0,0]") + "}"), "2^63");
  refused(file_of("{" + tensor("F32", "[2]", "[0,4]") + "}", four), "need 8");
  refused(file_of("{" + tensor("F32", "[1]", "[4,0]") + "}", four), "a negative number of");
  refused(file_of("{" + tensor("F32", "[1]", "[0]") + "}", four), "a begin and an end");
  refused(file_of("{" + tensor("F32", "[2]", "[0,8]") + "}", four), "cut off");
  refused(file_of("{" + tensor("F32", "[1]", "[0,4]") + "}", eight), "4 bytes follow");
  refused(file_of("{" + tensor("F32", "[1]", "[4,8]") + "}", eight), "a gap");
  const std::string other = R"(,"y":{"dtype":"F32","shape":[1],"data_offsets":[2,6]}})";
  refused(file_of("{" + tensor("F32", "[1]", "[0,4]") + other, eight), "they overlap");
  refused(file_of(R"({"__metadata__":[]})"), "metadata are not an object");
  refused(file_of(R"({"__metadata__":{"a":1}})"), "metadata 'a' is not a text");
  CHECK_THROWS_WITH(read_safetensors("missing.safetensors"), Catch::Contains("cannot be read"));
  CHECK_THROWS_WITH(read_safetensors("."), Catch::Contains("cannot be read"));
}

}  // namespace
}  // namespace attest::certify
