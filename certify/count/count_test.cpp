#include "certify/count/count.hpp"

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "certify/testing/schema.hpp"
#include "core/testing/catch.hpp"
#include "io/recording/trace_text.hpp"
#include "schedules/register.hpp"
#include "sparse/inputs/random_inputs.hpp"
#include "sparse/inputs/schedules/input_schedules.hpp"

namespace attest::certify {
namespace {

nlohmann::json counted(const std::string& schedule, const std::string& text,
                       io::FastMemory capacity) {
  const io::ScheduleRegistry& schedules = dense_schedules();
  const Problem problem = Problem::parse(text);
  const AbiProblem form(problem, 1);
  const auto spec = io::ScheduleSpec::parse(schedule);
  const io::ScheduleFamily& family = schedules.find(spec.name);
  const auto made = family.make(spec, *form.get(), capacity);
  TraceOptions options;
  options.caches = {io::CacheSpec::parse("lru:300"), io::CacheSpec::parse("set:64,ways=2,line=8")};
  return count_json(count_schedule(family, *made, problem, capacity),
                    best_schedule(schedules, family.direction(), *form.get(), capacity),
                    record_schedule(*made, problem, capacity, options), problem, 0);
}

TEST_CASE("schedules name the paper and the algorithm", "[count]") {
  const io::ScheduleRegistry& schedules = dense_schedules();
  CHECK(schedules.find("flash1").source() == "Dao et al. 2022, Algorithm 1");
  CHECK(schedules.find("loss_small").source() == "Li et al. 2024, Algorithm 6");
  CHECK(schedules.find("hybrid").source() == "this project's own");
  for (const auto& family : schedules.families()) {
    INFO(family->name());
    // A paper has a year.
    const bool named = family->source().find(" 20") != std::string::npos;
    CHECK((named || family->source() == "this project's own"));
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

TEST_CASE("without the table of best tiles a count says null", "[count]") {
  const auto schema = nlohmann::json::parse(std::ifstream(ATTEST_COUNT_SCHEMA));
  const Problem problem = Problem::parse("sq=40,d=8");
  const AbiProblem form(problem, 1);
  const io::FastMemory capacity = io::FastMemory::of_words(100);
  const io::ScheduleFamily& family = dense_schedules().find("flash2");
  const auto made = family.make({"flash2", {}}, *form.get(), capacity);
  const auto object =
      count_json(count_schedule(family, *made, problem, capacity), std::nullopt, {}, problem, 0);
  check_against(object, schema);
  CHECK(object.at("best_schedule").is_null());
}

TEST_CASE("counts of sparse inputs have the fields of the schema", "[count]") {
  const auto schema = nlohmann::json::parse(std::ifstream(ATTEST_COUNT_SCHEMA));
  const auto inputs = sparse::RandomInputs::parse("csr:density=0.3");
  const Problem problem = Problem::parse("sq=20,d=8");
  for (const char* schedule : {"sparse_flash", "stored_support_bwd"}) {
    const auto found = sparse::count_sparse_inputs({schedule, {}}, inputs.operands_for(problem),
                                                   io::FastMemory::of_words(4000));
    const auto object = count_json(found.count, found.best, {}, problem, 0, inputs.to_string());
    check_against(object, schema);
    CHECK(object.at("inputs") == "csr:density=0.3,seed=1");
  }
}

TEST_CASE("a recorded run is written and replayed", "[count]") {
  const io::ScheduleRegistry& schedules = dense_schedules();
  const Problem problem = Problem::parse("sq=6,sk=5,d=3");
  const AbiProblem form(problem, 1);
  const auto made = schedules.make("flash2:bq=2,bk=1", *form.get(), io::FastMemory{});
  TraceOptions options;
  options.file = "count_test.trace";
  options.caches = {io::CacheSpec::parse("belady:1000")};
  const std::vector<Replayed> replays = record_schedule(*made, problem, io::FastMemory{}, options);
  std::ifstream file(options.file);
  std::string line;
  std::getline(file, line);
  CHECK(line == "attest-trace-1");
  std::getline(file, line);
  CHECK(line == "schedule flash2:bq=2,bk=1");
  std::getline(file, line);
  CHECK(line == "problem " + problem.to_string());
  io::Words loads, stores;
  while (std::getline(file, line)) {
    const io::WordMove move = io::parse_word_move(line);
    if (move.kind == io::WordMove::Kind::load) loads += 1;
    if (move.kind == io::WordMove::Kind::store) stores += 1;
  }
  CHECK(loads == made->closed_form().reads.words);
  CHECK(stores == made->closed_form().writes.words);
  REQUIRE(replays.size() == 1);
  CHECK(replays[0].traffic.read_words() == 6 * 3 + 2 * 5 * 3);  // each word once
  std::remove(options.file.c_str());

  options.caches.clear();
  options.most_moves = 100;
  CHECK_THROWS_WITH(record_schedule(*made, problem, io::FastMemory{}, options),
                    "trace: more than 100 moves; make the problem smaller");
  CHECK_FALSE(std::ifstream(options.file));
  const Problem two_heads = Problem::parse("hq=2,sq=6,sk=5,d=3");
  const AbiProblem heads(two_heads, 1);
  const auto two = schedules.make("flash2:bq=2,bk=1", *heads.get(), io::FastMemory{});
  CHECK_THROWS_WITH(record_schedule(*two, two_heads, io::FastMemory{}, options),
                    Catch::Contains("a trace has one head"));
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
