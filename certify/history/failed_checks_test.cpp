#include "certify/history/failed_checks.hpp"

#include <cstdio>

#include "certify/files.hpp"
#include "core/error.hpp"
#include "core/testing/catch.hpp"

namespace attest::certify {
namespace {

struct File {
  explicit File(const std::string& text) { write_file(path, text); }
  ~File() { std::remove(path.c_str()); }
  std::string path = "failed_checks_test.jsonl";
};

const std::string kHeader = "{\"event\":\"campaign\"}\n";

std::string check(const std::string& kernel, const std::string& verdict, int position) {
  return R"({"event":"check","kernel":")" + kernel + R"(","law":"ones","position":)" +
         std::to_string(position) + R"(,"verdict":")" + verdict + "\"}\n";
}

TEST_CASE("the checks that failed are read from a journal", "[sharing]") {
  const File file(kHeader + check("a/lib.so:x", "passed", 1) + check("a/lib.so:x", "violated", 7) +
                  check("cpu/standard", "crashed", 2) + R"({"event":"begin","kernel":"cpu)");
  const auto failed = failed_checks(file.path, {"b/lib.so:x", "cpu/flash2"});
  REQUIRE(failed.size() == 1);
  CHECK(failed.at("b/lib.so:x") == FailedChecks{{"ones", 7}});
}

TEST_CASE("a journal that was cut off at its beginning has no checks", "[sharing]") {
  for (const std::string& text : {std::string(), std::string(kHeader).substr(0, 12)}) {
    const File file(text);
    CHECK(failed_checks(file.path, {"x"}).empty());
  }
}

TEST_CASE("what is no journal is refused", "[sharing]") {
  CHECK_THROWS_WITH(failed_checks("absent.jsonl", {}), Catch::Contains("No such file"));
  for (const std::string& text :
       {std::string("text\n"), std::string("text"), check("x", "passed", 1)}) {
    const File file(text);
    CHECK_THROWS_WITH(failed_checks(file.path, {}), Catch::Contains("is no journal"));
  }
  const File file(kHeader + "{\"event\":\"check\",\"verdict\":\"violated\"}\n");
  CHECK_THROWS_WITH(failed_checks(file.path, {}), Catch::Contains("no record"));
}

}  // namespace
}  // namespace attest::certify
