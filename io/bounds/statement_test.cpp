#include "io/bounds/statement.hpp"

#include "core/testing/catch.hpp"

namespace attest::io {
namespace {

TEST_CASE("a condition that is not met is said in whole numbers", "[bounds]") {
  CHECK(below("fast_words", 10, 32.5) == "fast_words is 10; it must be at least 32");
  CHECK(above("fast_words", 33, 32.5) == "fast_words is 33; it must be at most 32");
  CHECK(below("fast_words", 32, 32).empty());
  CHECK(above("fast_words", 32, 32).empty());
}

TEST_CASE("numbers beyond 64 bits are said, too", "[bounds]") {
  CHECK(above("fast_words", 0x1p63, 1) ==
        "fast_words is 9223372036854775808; it must be at most 1");
}

}  // namespace
}  // namespace attest::io
