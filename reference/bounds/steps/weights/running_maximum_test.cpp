#include "reference/bounds/steps/weights/running_maximum.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/rng.hpp"
#include "core/testing/catch.hpp"
#include "reference/bounds/steps/roundoff.hpp"

using namespace attest::reference;
using attest::Rng;

namespace {

Rises rises_of(const std::vector<double>& scores, const std::vector<double>& errors) {
  RunningMaximum maximum;
  return maximum.rises(scores.data(), errors.data(), 0, static_cast<std::int64_t>(scores.size()));
}

int records(const std::vector<double>& scores) {
  double best = -std::numeric_limits<double>::infinity();
  int count = 0;
  for (const double score : scores) {
    if (score > best) best = score, ++count;
  }
  return count;
}

int records_either_way(std::vector<double> scores) {
  const int up = records(scores);
  std::reverse(scores.begin(), scores.end());
  return std::max(up, records(scores));
}

TEST_CASE("without errors rises are the records of the better direction", "[reference]") {
  const double masked = -std::numeric_limits<double>::infinity();
  for (const std::vector<double>& scores :
       {std::vector<double>{1, 2, 3, 4}, {4, 3, 2, 1}, {2, 2, 2}, {masked, 1, 0, masked, 2}, {5}}) {
    const std::vector<double> none(scores.size(), 0.0);
    CHECK(rises_of(scores, none).possible == records_either_way(scores));
    CHECK(rises_of(scores, none).likely == records_either_way(scores));
  }
}

// The exact scores fall, so their records are 1; computed within their errors they rise n times.
TEST_CASE("records that only rounding makes are counted", "[reference]") {
  constexpr int kKeys = 300;
  std::vector<double> exact(kKeys), computed(kKeys), errors(kKeys, 1.0);
  for (std::size_t j = 0; j < kKeys; ++j) {
    const double part = static_cast<double>(j) / kKeys;
    exact[j] = -0.5 * std::abs(part - 0.5);
    computed[j] = exact[j] - 0.5 + part;
  }
  REQUIRE(records_either_way(exact) < kKeys);
  REQUIRE(records_either_way(computed) == kKeys);
  CHECK(rises_of(exact, errors).possible == kKeys);
  // Errors too small to reorder distant keys add nothing.
  std::vector<double> apart(kKeys);
  for (std::size_t j = 0; j < kKeys; ++j) apart[j] = 10 * static_cast<double>(j);
  apart[0] = 1e6;
  REQUIRE(records_either_way(apart) == 2);
  CHECK(rises_of(apart, errors).possible == 2);
}

TEST_CASE("computed scores never rise more often than possible, seldom more than likely",
          "[reference]") {
  Rng rng(3);
  for (const std::size_t keys : {2u, 17u, 200u, 2000u}) {
    for (const double spread : {0.0, 0.01, 1.0, 100.0}) {
      for (int trial = 0; trial < 20; ++trial) {
        std::vector<double> exact(keys), errors(keys), computed(keys);
        for (std::size_t j = 0; j < keys; ++j) {
          exact[j] = spread * rng.normal();
          errors[j] = 1 + std::abs(rng.normal());
          computed[j] = exact[j] + errors[j] * (2 * rng.uniform() - 1);
        }
        const Rises found = rises_of(exact, errors);
        const int rises = records_either_way(computed);
        CAPTURE(keys, spread, rises, found.possible, found.likely);
        CHECK(rises <= found.possible);
        CHECK(rises <= found.likely);
        CHECK(found.likely <= found.possible);
        CHECK(found.likely >= records_either_way(exact));
      }
    }
  }
}

TEST_CASE("errors without limit make every key a possible rise", "[reference]") {
  const std::vector<double> errors(40, std::numeric_limits<double>::infinity());
  std::vector<double> scores(40);
  for (std::size_t j = 0; j < 40; ++j) scores[j] = -static_cast<double>(j);
  CHECK(rises_of(scores, errors).possible == 40);
}

TEST_CASE("a count above most_successes is as improbable as the bounds", "[reference]") {
  CHECK(most_successes(0) == 0);
  for (const double mean : {0.01, 1.0, 6.0, 1000.0}) {
    const double next = most_successes(mean) + 1;
    CHECK(next * std::log(next / mean) - next + mean >= kLambda * kLambda / 2);
    const double most = next - 1;
    CHECK((most <= mean || most * std::log(most / mean) - most + mean < kLambda * kLambda / 2));
  }
}

}  // namespace
