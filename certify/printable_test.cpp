#include "certify/printable.hpp"

#include "core/testing/catch.hpp"

namespace attest::certify {
namespace {

TEST_CASE("visible text stays as it is", "[printable]") {
  for (const char* text : {"", "mask.txt", "Maß – 行列", "\U0001F600", "\u00a0", "~"}) {
    CHECK(printable(text) == text);
  }
}

TEST_CASE("what a terminal would obey is spelled", "[printable]") {
  CHECK(printable("a\x1b[31mb") == "a\\x1b[31mb");
  CHECK(printable("a\tb\nc\r") == "a\\x09b\\x0ac\\x0d");
  CHECK(printable("\x7f") == "\\x7f");
  CHECK(printable("\xc2\x9b"
                  "31m") == "\\xc2\\x9b31m");  // a control sequence begins with U+009B too
  CHECK(printable(std::string_view("a\0b", 3)) == "a\\x00b");
}

TEST_CASE("bytes that are no UTF-8 are spelled", "[printable]") {
  CHECK(printable("\xff") == "\\xff");
  CHECK(printable("a\xc3") == "a\\xc3");         // ends too early
  CHECK(printable("\xc0\xaf") == "\\xc0\\xaf");  // longer than needed
  CHECK(printable("\xe0\x80\xaf") == "\\xe0\\x80\\xaf");
  CHECK(printable("\xed\xa0\x80") == "\\xed\\xa0\\x80");  // a surrogate
  CHECK(printable("\xf4\x90\x80\x80") == "\\xf4\\x90\\x80\\x80");
}

TEST_CASE("line feeds between lines stay", "[printable]") {
  CHECK(printable_lines("a\n\x1b\n") == "a\n\\x1b\n");
}

}  // namespace
}  // namespace attest::certify
