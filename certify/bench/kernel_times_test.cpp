#include "certify/bench/kernel_times.hpp"

#include <fstream>

#include "certify/testing/schema.hpp"

namespace attest::certify {
namespace {

BenchSetting setting() { return {Problem::parse("hq=2,sq=3,sk=5,d=4"), 2, 3, 7}; }

// Two kernels in three rounds, on machines that do 1000 operations a second.
Measurement measurement() {
  return {{{"first", {1, 2, 3}, ""}, {"second", {3, 4, 9}, ""}}, {1000, 1000, 1000}};
}

TEST_CASE("rows of a measurement", "[bench]") {
  const auto rows = kernel_times(measurement(), setting(), proptest::Direction::forward);
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].kernel == "first");
  CHECK(rows[0].seconds.median == 2);
  CHECK(rows[0].against_first.low == 1);
  CHECK(rows[0].against_first.high == 1);
  CHECK(rows[1].seconds.median == 4);
  CHECK(rows[1].against_first.median == 3);  // of 3, 2 and 3
  const double operations = useful_flops(setting().problem, proptest::Direction::forward);
  CHECK(rows[1].flops == operations / 4);
  CHECK(rows[1].share_of_peak == operations / 4 / 2000);
  CHECK(kernel_times(measurement(), setting(), proptest::Direction::backward)[1].flops >
        rows[1].flops);
}

TEST_CASE("bench JSON has every required field of the schema", "[bench]") {
  const auto schema = nlohmann::json::parse(std::ifstream(ATTEST_BENCH_SCHEMA));
  nlohmann::json object =
      bench_json(setting(), kernel_times(measurement(), setting(), proptest::Direction::backward));
  check_against(object, schema);
  CHECK(object.at("times").at(1).at("direction") == "backward");
  CHECK(object.at("problem") == setting().problem.to_string());
}

}  // namespace
}  // namespace attest::certify
