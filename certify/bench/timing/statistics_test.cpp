#include "certify/bench/timing/statistics.hpp"

#include "core/error.hpp"
#include "core/testing/catch.hpp"

namespace attest::certify {
namespace {

TEST_CASE("quartiles interpolate between order statistics", "[bench]") {
  const Quartiles odd = quartiles({5, 1, 3, 2, 4});
  CHECK(odd.low == 2);
  CHECK(odd.median == 3);
  CHECK(odd.high == 4);
  const Quartiles even = quartiles({4, 1});
  CHECK(even.low == 1.75);
  CHECK(even.median == 2.5);
  CHECK(quartiles({7}).high == 7);
  CHECK_THROWS_AS(quartiles({}), InvalidProblem);
}

TEST_CASE("ratios are paired by round", "[bench]") {
  // The ratio of the medians would be 2 / 4; every round says 1 / 4, 1 / 4, 3 / 4.
  const Quartiles ratio = paired_ratios({1, 2, 9}, {4, 8, 12});
  CHECK(ratio.median == 0.25);
  CHECK(ratio.high == 0.5);
  CHECK_THROWS_AS(paired_ratios({1}, {1, 2}), InvalidProblem);
}

}  // namespace
}  // namespace attest::certify
