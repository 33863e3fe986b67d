#include "certify/reproduce/claims/device_words.hpp"

#include "core/error.hpp"
#include "core/testing/catch.hpp"

namespace attest::certify {
namespace {

const char* const kBegin =
    R"({"kind": "run", "date": "2026-01-31T10:00:00+00:00", "device": "a device"})"
    "\n";

std::string run_line(const char* family, int fast_bytes, int words, double moved, double seconds) {
  return R"({"kind": "families", "direction": "forward", "family": ")" + std::string(family) +
         R"(", "kernel": "gpu/k", "problem": "sq=64,d=64", "fast_bytes": )" +
         std::to_string(fast_bytes) + R"(, "words": )" + std::to_string(words) +
         R"(, "profiled": {"read_bytes": )" + std::to_string(moved) +
         R"(, "written_bytes": 0.0}, "seconds": )" + std::to_string(seconds) +
         R"(, "seconds_quartiles": [)" + std::to_string(seconds * 0.9) + ", " +
         std::to_string(seconds * 1.1) + "]}\n";
}

std::string density_line(double density, double speedup) {
  const std::string d = std::to_string(density), s = std::to_string(speedup);
  return R"({"kind": "density", "forward_density": )" + d + R"(, "forward_speedup": )" + s +
         R"(, "backward_speedup": )" + s + "}\n";
}

std::string golden_line(int device, int emulated) {
  return R"({"kind": "golden", "device": {"read_bytes": )" + std::to_string(device) +
         R"(}, "emulated": {"read_bytes": )" + std::to_string(emulated) + "}}\n";
}

Outcome outcome_of(const std::string& lines, const std::string& part) {
  for (const Claim& claim : device_words(parse_device_records(lines)).claims) {
    if (claim.text.find(part) != std::string::npos) return claim.outcome;
  }
  FAIL("no claim of " << part);
  return Outcome::not_compared;
}

TEST_CASE("square tiles are held against no less fast memory below d^2", "[device]") {
  const char* const claim = "forward: for M < d^2";
  const std::string square = run_line("square_tiled", 8000, 500, 2000, 1);
  // d^2 words are 16384 bytes.
  CHECK(outcome_of(kBegin + square + run_line("flash2", 9000, 600, 2500, 1), claim) ==
        Outcome::reproduced);
  CHECK(outcome_of(kBegin + square + run_line("flash2", 9000, 600, 1500, 1), claim) ==
        Outcome::not_reproduced);
  CHECK(outcome_of(kBegin + square + run_line("flash2", 7000, 600, 2500, 1), claim) ==
        Outcome::not_compared);
  CHECK(outcome_of(kBegin + square + run_line("flash2", 17000, 600, 2500, 1), claim) ==
        Outcome::not_compared);
  CHECK(outcome_of(kBegin + square + run_line("square_tiled", 6000, 700, 3000, 1) +
                       run_line("flash2", 9000, 600, 2500, 1),
                   claim) == Outcome::corrected);
}

TEST_CASE("larger blocks are faster where quartiles are apart", "[device]") {
  const std::string small = kBegin + run_line("flash2", 9000, 600, 1, 1);
  const char* const claim = "as blocks grow";
  CHECK(outcome_of(small + run_line("flash2", 12000, 300, 1, 0.5), claim) == Outcome::reproduced);
  CHECK(outcome_of(small + run_line("flash2", 12000, 300, 1, 0.95), claim) ==
        Outcome::not_reproduced);
  CHECK(outcome_of(small + run_line("flash2", 12000, 700, 1, 0.5), claim) == Outcome::corrected);
  CHECK(outcome_of(small, claim) == Outcome::not_compared);
}

TEST_CASE("speed-ups of block sparsity are fitted", "[device]") {
  const auto lines = [](double a, double b, double c, double d) {
    return kBegin + density_line(1, a) + density_line(0.5, b) + density_line(0.25, c) +
           density_line(0.125, d);
  };
  const char* const claim = "backward: block sparsity";
  CHECK(outcome_of(lines(1, 2, 4, 8.001), claim) == Outcome::reproduced);
  CHECK(outcome_of(lines(0.6, 1.13, 2.1, 3.95), claim) == Outcome::corrected);
  CHECK(outcome_of(lines(1, 1, 1, 1.001), claim) == Outcome::not_reproduced);
  CHECK(outcome_of(kBegin, claim) == Outcome::not_compared);
}

TEST_CASE("one call with other bytes is not reproduced", "[device]") {
  const char* const claim = "call by call";
  CHECK(outcome_of(kBegin + golden_line(5, 5), claim) == Outcome::reproduced);
  CHECK(outcome_of(kBegin + golden_line(5, 5) + golden_line(5, 6), claim) ==
        Outcome::not_reproduced);
  CHECK(outcome_of("", claim) == Outcome::not_compared);
  // A later run on the device says it anew.
  CHECK(outcome_of(kBegin + golden_line(5, 6) + kBegin + golden_line(5, 5), claim) ==
        Outcome::reproduced);
}

TEST_CASE("lines that are no results of a device are refused by number", "[device]") {
  CHECK_THROWS_WITH(parse_device_records(golden_line(1, 1)),
                    Catch::Contains("line 1: no record of kind 'run'"));
  CHECK_THROWS_WITH(parse_device_records(kBegin + std::string("{\"kind\": \"families\"}\n")),
                    Catch::Contains("results of devices: line 2"));
  CHECK_THROWS_AS(parse_device_records("no JSON"), InvalidProblem);
}

TEST_CASE("what is on record is read", "[device]") {
  const auto records = parse_device_records(recorded_on_devices());
  REQUIRE_FALSE(records.empty());
  for (const DeviceRecord& record : records) {
    INFO(record.device);
    CHECK(record.equal_calls == record.calls);
    CHECK_FALSE(record.runs.empty());
  }
  const Findings findings = device_words(records);
  CHECK(findings.tables.size() == records.size());
  CHECK_FALSE(findings.plots.empty());
}

}  // namespace
}  // namespace attest::certify
