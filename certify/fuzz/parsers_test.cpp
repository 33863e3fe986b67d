#include "certify/fuzz/parsers.hpp"

#include <filesystem>
#include <set>
#include <stdexcept>
#include <vector>

#include "certify/files.hpp"
#include "certify/temporary_folder.hpp"
#include "core/error.hpp"
#include "core/testing/catch.hpp"

namespace attest::certify::fuzz {
namespace {

// Inputs of a parser: what the corpus says of each is the beginning of its name.
std::vector<std::filesystem::path> inputs_of(const Parser& parser) {
  std::vector<std::filesystem::path> all;
  for (const auto& entry : std::filesystem::directory_iterator(
           std::filesystem::path(ATTEST_FUZZ_CORPUS) / parser.name)) {
    all.push_back(entry.path());
  }
  return all;
}

bool said_to_be_taken(const std::filesystem::path& path) {
  return path.filename().string().starts_with("taken_");
}

TEST_CASE("the corpus is taken and refused as its names say", "[fuzz]") {
  const TemporaryFolder folder;
  for (const Parser& parser : parsers()) {
    std::set<bool> met;
    for (const std::filesystem::path& path : inputs_of(parser)) {
      INFO(path.string());
      const bool taken = said_to_be_taken(path);
      CHECK((taken || path.filename().string().starts_with("refused_")));
      CHECK(takes(parser, read_file(path.string()), folder.file("")) == taken);
      met.insert(taken);
    }
    INFO(parser.name);
    CHECK(met.size() == 2);
  }
}

TEST_CASE("each folder of the corpus has its parser", "[fuzz]") {
  for (const auto& entry : std::filesystem::directory_iterator(ATTEST_FUZZ_CORPUS)) {
    CHECK_NOTHROW(find_parser(entry.path().filename().string()));
  }
  CHECK_THROWS_WITH(find_parser("problm"),
                    Catch::Contains("unknown parser 'problm'") && Catch::Contains(" problem "));
}

// Parsers as they must not be.
void out_of_range(const std::string& bytes, const std::string&) {
  if (bytes.size() > 3) std::string("abc").at(bytes.size());
}
void forgets(const std::string& bytes, const std::string&) {
  if (bytes == "1e3") throw InternalError("a number is another after a round trip");
}

TEST_CASE("faults are no refusals", "[fuzz]") {
  CHECK(takes({"out_of_range", out_of_range}, "abc", ""));
  CHECK_THROWS_AS(takes({"out_of_range", out_of_range}, "abcd", ""), std::out_of_range);
  CHECK_THROWS_AS(takes({"forgets", forgets}, "1e3", ""), InternalError);
}

}  // namespace
}  // namespace attest::certify::fuzz
