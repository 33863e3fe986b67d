#include "certify/count.hpp"

#include <fstream>
#include <nlohmann/json.hpp>

#include "core/testing/catch.hpp"
#include "cpu/register.hpp"

namespace attest::certify {
namespace {

nlohmann::json counted(const std::string& schedule, const std::string& text,
                       io::FastMemory capacity) {
  io::ScheduleRegistry schedules;
  register_cpu_schedules(schedules);
  const Problem problem = Problem::parse(text);
  const AbiProblem form(problem, 1);
  const auto spec = io::ScheduleSpec::parse(schedule);
  const io::ScheduleFamily& family = schedules.find(spec.name);
  const auto made = family.make(spec, *form.get(), capacity);
  return count_json(count_schedule(family, *made, problem, capacity),
                    best_schedule(schedules, family.direction(), *form.get(), capacity), problem,
                    0);
}

// Every field of the object is described, every required one is there, all the way down.
void check_against(const nlohmann::json& part, const nlohmann::json& schema) {
  if (part.is_array()) {
    for (const auto& item : part) check_against(item, schema.at("items"));
  }
  if (!part.is_object()) return;
  for (const auto& field : schema.at("required")) CHECK(part.contains(field.get<std::string>()));
  for (const auto& [key, value] : part.items()) {
    INFO(key);
    REQUIRE(schema.at("properties").contains(key));
    check_against(value, schema.at("properties").at(key));
  }
}

TEST_CASE("counts have the fields of their schema", "[count]") {
  const auto schema = nlohmann::json::parse(std::ifstream(ATTEST_COUNT_SCHEMA));
  check_against(counted("flash2", "sq=40,d=8", io::FastMemory::of_words(100)), schema);
  check_against(counted("two_pass_row", "sq=40,d=8,dtype=bf16", io::FastMemory::of_bytes(999)),
                schema);
  check_against(counted("loss_small", "sq=40,d=8", io::FastMemory::of_words(100)), schema);
  check_against(counted("standard_bwd", "sq=40,d=8", io::FastMemory::of_words(100)), schema);
}

TEST_CASE("what a count says", "[count]") {
  const auto object =
      counted("flash2_row:bq=4", "sq=16,sk=10,d=3,dv=5", io::FastMemory::of_words(64));
  // Q once, K and V for each of four blocks of queries; O and LSE.
  CHECK(object.at("counted").at("read").at("words") == 16 * 3 + 4 * 10 * (3 + 5));
  CHECK(object.at("counted").at("written").at("words") == 16 * (5 + 1));
  CHECK(object.at("counted").at("moved").at("bytes") == 4 * (16 * 3 + 4 * 10 * 8 + 16 * 6));
  CHECK(object.at("counted").at("peak").at("words") == 4 * (3 + 5 + 3) + 1);
  CHECK(object.at("closed_form_equal") == true);
  CHECK(object.at("blocks").at("count") == 4);
  CHECK(object.at("fast_memory").at("words") == 64);
  CHECK(object.at("fast_memory").at("bytes").is_null());
  CHECK(object.at("ratio").get<double>() >= 1);
}

}  // namespace
}  // namespace attest::certify
