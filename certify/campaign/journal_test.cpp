#include "certify/campaign/journal.hpp"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <limits>

#include "certify/campaign/host.hpp"
#include "core/error.hpp"
#include "core/testing/catch.hpp"
#include "fixtures/defects/defect.hpp"

namespace attest::certify {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
const CheckName kFirst{"kernel", "reference_forward", 3}, kSecond{"kernel", "repeat", 4};

std::string read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::size_t lines(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

class File {
 public:
  explicit File(const char* path) : path_(path) { std::remove(path); }
  ~File() { std::remove(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

nlohmann::json header(std::uint64_t seed = 1) {
  CampaignOptions options;
  options.seed = seed;
  return campaign_header({&fixtures::defective_kernel(fixtures::Defect::none)}, options);
}

TEST_CASE("a journal gives back what it was told", "[journal]") {
  const File file("journal_test_1.jsonl");
  const CheckRecord passed{
      Verdict::passed, "", 18446744073709551615u, {{"O", 0.1}, {"LSE", kInfinity}}};
  const ShrunkRecord shrunk{
      {Problem::parse("sq=2,d=1,mask=random_50_3"), proptest::Values::halves, 7, 2}, "why", 11};
  {
    Journal journal;
    journal.open(file.path(), header());
    journal.begin(kFirst, "attest check one");
    journal.add(kFirst, passed);
    journal.add(kFirst, shrunk);
    journal.begin(kSecond, "attest check two");
  }
  Journal again;
  again.open(file.path(), header());
  const auto check = again.check(kFirst);
  REQUIRE(check);
  CHECK(check->verdict == passed.verdict);
  CHECK(check->seed == passed.seed);
  CHECK(check->outputs == passed.outputs);
  const auto small = again.shrunk(kFirst);
  REQUIRE(small);
  CHECK(small->shrunk.problem.to_string() == shrunk.shrunk.problem.to_string());
  CHECK(small->shrunk.values == shrunk.shrunk.values);
  CHECK(small->message == "why");
  CHECK(small->checks == 11);
  CHECK_FALSE(again.check(kSecond));
  CHECK(again.unfinished() == std::vector<std::string>{"attest check two"});
  Journal other;
  other.read_records(again.records(), "there");
  CHECK(other.records() == again.records());
}

TEST_CASE("the reproducing line is in the file before its check has run", "[journal]") {
  const File file("journal_test_2.jsonl");
  Journal journal;
  journal.open(file.path(), header());
  journal.begin(kFirst, "attest check one");
  CHECK(lines(read(file.path())) == 2);
  CHECK(read(file.path()).find("attest check one") != std::string::npos);
  journal.add(kFirst, CheckRecord{});
  CHECK(lines(read(file.path())) == 3);
}

TEST_CASE("a line that was cut off is dropped, another campaign's file refused", "[journal]") {
  const File file("journal_test_3.jsonl");
  {
    Journal journal;
    journal.open(file.path(), header());
    journal.add(kFirst, CheckRecord{});
  }
  const std::string whole = read(file.path());
  std::ofstream(file.path(), std::ios::app) << R"({"event":"check","ker)";
  {
    Journal journal;
    journal.open(file.path(), header());
    CHECK(journal.check(kFirst));
    CHECK(read(file.path()) == whole);
    journal.add(kSecond, CheckRecord{});
  }
  CHECK(lines(read(file.path())) == 3);
  Journal other;
  CHECK_THROWS_WITH(other.open(file.path(), header(2)), Catch::Contains("seed is 1, not 2"));
  std::ofstream(file.path(), std::ios::app) << "{}\n";
  CHECK_THROWS_WITH(other.open(file.path(), header()), Catch::Contains("no record"));
  CHECK_THROWS_AS(other.open("missing_directory/journal", header()), InvalidProblem);
}

TEST_CASE("what a run wrote is taken out, not what an earlier one did", "[journal]") {
  const File file("journal_test_5.jsonl");
  const auto run = [&](const CheckName& name, bool forget) {
    Journal journal;
    journal.open(file.path(), header());
    journal.begin(name, "attest check");
    journal.add(name, CheckRecord{});
    if (forget) journal.forget_run();
  };
  run(kFirst, true);
  CHECK(lines(read(file.path())) == 1);  // the header
  run(kFirst, false);
  const std::string whole = read(file.path());
  run(kSecond, true);
  CHECK(read(file.path()) == whole);
  Journal().forget_run();  // has no file
  Journal again;
  again.open(file.path(), header());
  CHECK(again.check(kFirst));
  CHECK_FALSE(again.check(kSecond));
}

TEST_CASE("a file that is no journal is refused and stays as it is", "[journal]") {
  const File file("journal_test_4.jsonl");
  for (const char* text :
       {"text\n", "text", "{}\n", "{\"event\":7}\n", "{\"event\":\"begin\"}\n"}) {
    INFO(text);
    std::ofstream(file.path()) << text;
    Journal journal;
    CHECK_THROWS_WITH(journal.open(file.path(), header()), Catch::Contains("is no journal"));
    CHECK(read(file.path()) == text);
  }
  // The first line of a campaign that died as it wrote it.
  const std::string whole = header().dump() + "\n";
  std::ofstream(file.path()) << whole.substr(0, whole.size() / 2);
  Journal journal;
  journal.open(file.path(), header());
  CHECK(read(file.path()) == whole);
}

TEST_CASE("results of a machine of another kind are refused", "[journal]") {
  tell_cpu_target("AVX2");
  const nlohmann::json now = header();
  tell_cpu_target("AVX3");
  const nlohmann::json other = header();
  tell_cpu_target("");
  CHECK_THROWS_WITH(
      require_same_campaign(other, now, "file"),
      Catch::Contains("'file' holds results of host.cpu_target AVX3, and this machine "
                      "has AVX2: ") &&
          Catch::Contains("or with the same ATTEST_CPU_TARGET"));
  CHECK_THROWS_WITH(require_same_campaign(now, header(), "file"), Catch::Contains("has none"));
  nlohmann::json arm = now;
  arm["machine"] = "aarch64";
  CHECK_THROWS_WITH(require_same_campaign(arm, now, "file"),
                    Catch::Contains("holds results of host.machine aarch64"));
  arm["program"] = "another";
  CHECK_THROWS_WITH(require_same_campaign(arm, now, "file"), Catch::Contains("another build"));
}

// The header of a campaign of one library, its path spelled so.
nlohmann::json header_of_library(const std::string& path, const char* bytes = "0123") {
  nlohmann::json spelled = header();
  spelled["kernels"][0]["kernel"] = path + ":mine";
  spelled["kernels"][0]["library"] = bytes;
  return spelled;
}

TEST_CASE("a library is the same however its path is spelled", "[journal]") {
  const File file("journal_test_6.jsonl");
  for (const char* path : {"./lib.so", "lib.so", "/a/folder/lib.so"}) {
    const CheckName mine{std::string(path) + ":mine", "ones", 0};
    const std::uint64_t known = std::string(path) == "./lib.so" ? 0 : 1;
    Journal journal;
    journal.open(file.path(), header_of_library(path));
    CHECK(journal.records().size() == known);
    CHECK(journal.check(mine).has_value() == (known == 1));
    journal.begin(mine, "attest check");
    journal.add(mine, CheckRecord{});
    CHECK(journal.records()[0]["kernel"] == std::get<0>(mine));
  }
  Journal other;
  CHECK_THROWS_WITH(other.open(file.path(), header_of_library("lib.so", "4567")),
                    Catch::Contains("of another build of the file of 'lib.so:mine'"));
  CHECK_THROWS_WITH(other.open(file.path(), header_of_library("other.so")),
                    Catch::Contains("its kernels differ"));
}

TEST_CASE("results of another build are refused", "[journal]") {
  const nlohmann::json now = header();
  REQUIRE_NOTHROW(require_same_campaign(now, now, "file"));
  const auto refused = [&](const nlohmann::json& other, const char* why) {
    INFO(why);
    CHECK_THROWS_WITH(require_same_campaign(other, now, "file"), Catch::Contains(why));
  };
  nlohmann::json other = now;
  other["program"] = "another";
  refused(other, "'file' holds results of another build of attest; go on with that build");
  other = now;
  other["kernels"][0]["library"] = "another";
  refused(other, "of another build of the file of 'fixtures/correct'");
  other["kernels"][0]["description"]["summary"] = "another";
  refused(other, "its kernels differ");
  other = now;
  other.erase("program");  // written before programs were noted
  refused(other, "another build of attest");
}

}  // namespace
}  // namespace attest::certify
