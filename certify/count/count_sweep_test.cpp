#include "certify/count/count_sweep.hpp"

#include <fstream>
#include <nlohmann/json.hpp>

#include "certify/testing/schema.hpp"
#include "core/testing/catch.hpp"
#include "schedules/register.hpp"

namespace attest::certify {
namespace {

SweepRow row_of(const Problem& problem, io::FastMemory capacity) {
  const AbiProblem form(problem, 1);
  const io::ScheduleFamily& family = dense_schedules().find("flash2");
  const auto made = family.make({"flash2", {}}, *form.get(), capacity);
  return {capacity, count_schedule(family, *made, problem, capacity),
          best_schedule(dense_schedules(), family.direction(), *form.get(), capacity), ""};
}

TEST_CASE("a table of several fast memories", "[certify]") {
  const Problem problem = Problem::parse("sq=512,d=16");
  std::vector<SweepRow> rows{
      {io::FastMemory::of_words(8), std::nullopt, std::nullopt, "it needs 51 words"}};
  for (const std::int64_t words : {256, 1024}) {
    rows.push_back(row_of(problem, io::FastMemory::of_words(words)));
  }
  const std::string text = sweep_text(rows);
  CHECK_THAT(text, Catch::StartsWith("M, words"));
  CHECK_THAT(text, Catch::Contains("does not fit"));
  CHECK_THAT(text, Catch::Contains("\n   1,024 "));
  CHECK(std::count(text.begin(), text.end(), '\n') == 4);

  const auto object = sweep_json(rows, problem, "", 0);
  auto schema = nlohmann::json::parse(std::ifstream(ATTEST_COUNT_SWEEP_SCHEMA));
  schema["properties"]["counts"]["items"] =
      nlohmann::json::parse(std::ifstream(ATTEST_COUNT_SCHEMA));
  check_against(object, schema);
  CHECK(object["counts"].size() == 2);
  CHECK(object["refused"][0]["fast_memory"] == 8);
  // Words decrease as fast memory grows.
  CHECK(object["counts"][0]["counted"]["moved"]["words"] >
        object["counts"][1]["counted"]["moved"]["words"]);
}

TEST_CASE("a table in bytes without the best schedules", "[certify]") {
  const Problem problem = Problem::parse("sq=512,d=16,dtype=bf16");
  SweepRow row = row_of(problem, io::FastMemory::of_bytes(4096));
  row.best.reset();
  const std::string text = sweep_text({row});
  CHECK_THAT(text, Catch::Contains("bytes moved"));
  CHECK_THAT(text, !Catch::Contains("best schedule"));
}

}  // namespace
}  // namespace attest::certify
