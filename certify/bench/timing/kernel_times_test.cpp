#include "certify/bench/timing/kernel_times.hpp"

#include <algorithm>
#include <fstream>
#include <optional>

#include "certify/bench/arithmetic_peak.hpp"
#include "certify/testing/schema.hpp"

namespace attest::certify {
namespace {

BenchSetting setting() { return {Problem::parse("hq=2,sq=3,sk=5,d=4"), 2, 3, 7}; }

// Two kernels in three rounds, on machines that do 1000 operations a second.
Measurement measurement() {
  return {{{"first", {1, 2, 3}, ""}, {"second", {3, 4, 9}, ""}}, {1000, 1000, 1000}};
}

TEST_CASE("rows of a measurement", "[bench]") {
  const auto rows = kernel_times(measurement(), setting(), Direction::forward);
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].kernel == "first");
  CHECK(rows[0].seconds.median == 2);
  CHECK(rows[0].against_first.low == 1);
  CHECK(rows[0].against_first.high == 1);
  CHECK(rows[1].seconds.median == 4);
  CHECK(rows[1].against_first.median == 3);  // of 3, 2 and 3
  const double operations = useful_flops(setting().problem, Direction::forward);
  CHECK(rows[1].flops == operations / 4);
  CHECK(rows[1].share_of_peak == operations / 4 / 2000);
  CHECK(kernel_times(measurement(), setting(), Direction::backward)[1].flops > rows[1].flops);
}

TEST_CASE("faster than a machine is told, where operations are in float32", "[bench]") {
  KernelTime row;
  BenchSetting one = setting();
  one.threads = 1;
  row.flops = 1000;
  CHECK(too_fast(row, one, 1000).empty());
  CHECK(too_fast(row, one, 999).find("faster than this machine can multiply") == 0);
  attest_description description{};
  CHECK(multiplies_in_float32(description, one.problem));
  description.numerics.operand_roundoff = 0x1p-11;
  CHECK_FALSE(multiplies_in_float32(description, one.problem));
  CHECK_FALSE(multiplies_in_float32({}, Problem::parse("sq=3,d=4,dtype=bf16")));
}

TEST_CASE("the ceiling is no lower than samples of the peak", "[bench]") {
  const std::optional<double> ceiling = arithmetic_ceiling_flops();
  if (!ceiling) return;
  double least = arithmetic_peak_flops();
  for (int sample = 0; sample < 5; ++sample) least = std::min(least, arithmetic_peak_flops());
  CHECK(*ceiling >= least);
}

TEST_CASE("bench JSON has every required field of the schema", "[bench]") {
  const auto schema = nlohmann::json::parse(std::ifstream(ATTEST_BENCH_SCHEMA));
  nlohmann::json object =
      bench_json(setting(), kernel_times(measurement(), setting(), Direction::backward));
  check_against(object, schema);
  CHECK(object.at("times").at(1).at("direction") == "backward");
  CHECK(object.at("problem") == setting().problem.to_string());
}

}  // namespace
}  // namespace attest::certify
