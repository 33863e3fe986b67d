#include "core/files/safetensors.hpp"

#include "core/error.hpp"
#include "core/testing/catch.hpp"

namespace attest {
namespace {

TEST_CASE("round trip of stored tensors", "[safetensors]") {
  StoredTensors file;
  file.metadata = {{"text", "quotes \" and \\ and \n"}};
  file.tensors["scalar"] = {"U8", {}, "a"};
  file.tensors["none"] = {"I32", {0, 3}, ""};
  file.tensors["five axes"] = {"I16", {1, 2, 1, 1, 2}, "abcdefgh"};
  const std::string bytes = write_safetensors(file);
  CHECK(bytes.size() % 8 == (bytes.size() - 9) % 8 + 1);  // nine bytes of data after whole eights
  const StoredTensors again = parse_stored_tensors(bytes, "x");
  CHECK(again.metadata == file.metadata);
  REQUIRE(again.tensors.size() == file.tensors.size());
  for (const auto& [name, tensor] : file.tensors) {
    INFO(name);
    CHECK(again.tensors.at(name).dtype == tensor.dtype);
    CHECK(again.tensors.at(name).shape == tensor.shape);
    CHECK(again.tensors.at(name).bytes == tensor.bytes);
  }
  CHECK(write_safetensors(again) == bytes);
}

TEST_CASE("a file that is cut off anywhere is refused", "[safetensors]") {
  StoredTensors file;
  file.tensors["x"] = {"I64", {2}, "0123456789abcdef"};
  const std::string bytes = write_safetensors(file);
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    INFO(length);
    CHECK_THROWS_AS(parse_stored_tensors(std::string_view(bytes).substr(0, length), "x"),
                    InvalidProblem);
  }
}

}  // namespace
}  // namespace attest
