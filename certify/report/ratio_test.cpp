#include "certify/report/ratio.hpp"

#include <limits>
#include <nlohmann/json.hpp>

#include "core/testing/catch.hpp"

namespace attest::certify {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST_CASE("bins of error over bound", "[ratio]") {
  CHECK(ratio_bin(1) == 0);
  CHECK(ratio_bin(0.75) == 0);
  CHECK(ratio_bin(0.5) == 1);
  CHECK(ratio_bin(0.25) == 2);
  CHECK(ratio_bin(0x1p-14) == 14);
  CHECK(ratio_bin(0x1p-15) == 15);
  CHECK(ratio_bin(0x1p-90) == 15);
  CHECK(ratio_bin(0) == 15);
}

TEST_CASE("ratios for people", "[ratio]") {
  CHECK(error_ratio_text(0.0625) == "0.062");
  CHECK(error_ratio_text(12345) == "1.23e+04");
  CHECK(error_ratio_text(kInfinity) == "infinite");
}

TEST_CASE("an infinite ratio is null in JSON and back", "[ratio]") {
  const auto read = [](double ratio) {
    return ratio_in(nlohmann::json::parse(nlohmann::json(ratio).dump()));
  };
  CHECK(read(kInfinity) == kInfinity);
  CHECK(read(0.3) == 0.3);
}

}  // namespace
}  // namespace attest::certify
