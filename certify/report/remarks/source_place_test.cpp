#include "certify/report/remarks/source_place.hpp"

#include "core/error.hpp"
#include "core/testing/catch.hpp"

namespace attest::certify {
namespace {

std::string text_of(const SourcePlace& place) {
  return place.file + (place.line > 0 ? ":" + std::to_string(place.line) : "");
}

TEST_CASE("a place is a file, or a line in it", "[report]") {
  CHECK(text_of(parse_place("src/mine.cpp")) == "src/mine.cpp");
  CHECK(text_of(parse_place("src/mine.cpp:12")) == "src/mine.cpp:12");
  for (const char* wrong : {"", ":12", "mine.cpp:", "mine.cpp:0", "mine.cpp:x", "mine.cpp:-1"}) {
    CHECK_THROWS_AS(parse_place(wrong), InvalidProblem);
  }
}

TEST_CASE("a remark is shown where the message says, or in the kernel's file", "[report]") {
  const SourcePlace given{"src/mine.cu", 3};
  const auto place = [&](const char* kernel, const char* message, const SourcePlace& otherwise) {
    return text_of(place_of(kernel, message, otherwise));
  };
  CHECK(place("./lib.so:x", "race: lane 0 writes what lane 1 read; ./src/a.cu:53", given) ==
        "src/a.cu:53");
  CHECK(place("m.py:f", "File \"/m.py\", line 9, in f\n  File \"/n.py\", line 7\nError", {}) ==
        "/n.py:7");
  CHECK(place("./lib.so:x", "O[0] is 1, exact 2", given) == "src/mine.cu:3");
  CHECK(place("./build/lib.so:x", "O[0] is 1", {}) == "build/lib.so");
  CHECK(place("folder/m.py:f", "O[0] is 1", {}) == "folder/m.py");
  CHECK(place("cpu/flash2", "O[0] is 1", {}).empty());
}

}  // namespace
}  // namespace attest::certify
