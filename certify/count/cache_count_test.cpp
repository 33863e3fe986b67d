#include "certify/count/cache_count.hpp"

#include <fstream>
#include <nlohmann/json.hpp>

#include "certify/testing/schema.hpp"
#include "core/error.hpp"
#include "core/testing/catch.hpp"
#include "schedules/register.hpp"

namespace attest::certify {
namespace {

const std::string kFile =
    "events: Ir Dr Dw I1mr D1mr D1mw ILmr DLmr DLmw ILdmr DLdmr DLdmw\n"
    "fn=(1) f\n"
    "totals: 900 80 70 1 60 50 1 40 30 2 5 20\n";

TEST_CASE("geometry is three numbers with a power of two of sets", "[cache]") {
  const CacheGeometry cache = CacheGeometry::parse("49152,12,64");
  CHECK(cache.bytes == 49152);
  CHECK(cache.ways == 12);
  CHECK(cache.line_bytes == 64);
  CHECK(cache.to_string() == "49152,12,64");
  for (const char* text :
       {"", "32768", "32768,8", "32768,8,64,1", "a,8,64", "32768,0,64", "-32768,8,64", "32768,8,48",
        "32768,8,16", "32768,7,64", "64,8,64", "9223372036854775808,8,64", "2147483648,8,64",
        "32768,4611686018427387904,64"}) {
    INFO(text);
    CHECK_THROWS_AS(CacheGeometry::parse(text), InvalidProblem);
  }
}

TEST_CASE("callgrind's file says what moved", "[cache]") {
  const CacheLines lines = parse_callgrind(kFile);
  CHECK(lines.read == 40);
  CHECK(lines.allocated == 30);
  CHECK(lines.written_back == 2 + 5 + 20);
  std::string without = kFile;
  without.replace(without.find("DLdmw"), 5, "other");
  const std::string short_file = kFile.substr(0, kFile.rfind(" 20"));
  CHECK(parse_callgrind(short_file).written_back == 2 + 5);
  const std::string no_totals = kFile.substr(0, kFile.find("totals"));
  for (const std::string& text : {std::string(), without, no_totals}) {
    CHECK_THROWS_AS(parse_callgrind(text), InvalidProblem);
  }
}

CacheCount judged(const std::string& name, Direction direction, const CacheLines& lines) {
  Registry registry;
  register_dense_schedule_kernels(registry);
  const io::ScheduleRegistry& schedules = dense_schedules();
  return judge_lines(schedules, registry.find(name), {name, "sq=64,d=16", direction},
                     CacheGeometry::parse("4096,4,64"), lines);
}

TEST_CASE("lines are judged by the bound for cache, filter and registers", "[cache]") {
  const CacheCount count = judged("cpu/schedule/flash2", Direction::forward, {300, 70, 80});
  CHECK(count.fast_bytes == 4096 + 2 * 64 + 640);
  CHECK(count.moved_bytes() == 450 * 64);
  CHECK(count.moved_bytes_without_allocation() == 380 * 64);
  REQUIRE(count.lower);
  CHECK_FALSE(count.below_bound());
  // A kernel that declares nothing may compute a score twice.
  CHECK(count.kernel.evaluation == io::Evaluation::may_recompute);
  REQUIRE(count.of_itself);
  CHECK(count.of_itself->counted.total_bytes().value() > 0);

  const std::int64_t least = count.lower->words * count.narrowest_bytes;
  CHECK_FALSE(
      judged("cpu/schedule/flash2", Direction::forward, {(least + 63) / 64, 0, 0}).below_bound());
  CHECK(judged("cpu/schedule/flash2", Direction::forward, {least / 64 - 1, 0, 0}).below_bound());
}

TEST_CASE("cache counts have the fields of their schema", "[cache]") {
  const auto schema = nlohmann::json::parse(std::ifstream(ATTEST_CACHE_COUNT_SCHEMA));
  const CacheCount count = judged("cpu/schedule/flash2", Direction::forward, {300, 70, 80});
  check_against(cache_count_json(count, 0), schema);
}

}  // namespace
}  // namespace attest::certify
