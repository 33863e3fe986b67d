#include "io/bounds/dense/loss.hpp"

#include <cmath>

#include "core/error.hpp"
#include "core/testing/catch.hpp"
#include "io/bounds/dense/coefficients.hpp"

namespace attest::io {
namespace {

TEST_CASE("loss gradient bounds", "[io][bounds]") {
  KernelClass once;
  once.evaluation = Evaluation::once;
  const LossExtent extent{4096, 64};
  CHECK(compulsory_loss(extent, {}).words == 4 * 4096 * 64 + 3 * 64 * 64);
  const double n = 4096;
  for (const std::int64_t fast_words : {64, 1024, 4096}) {
    const double a = 64 / std::sqrt(static_cast<double>(fast_words));
    const Bound bound = loss_small_once(extent, once, fast_words);
    REQUIRE(bound.is_lower_bound());
    const double formula = (4 * a - 1) * n * n - 2 * static_cast<double>(fast_words) - 3 * n * 64;
    CHECK(static_cast<double>(bound.words) >= formula + 2.6 * static_cast<double>(fast_words));
    CHECK(static_cast<double>(bound.words) <= formula + 3 * static_cast<double>(fast_words));
    // The best known schedule moves more.
    const double theta = static_cast<double>(fast_words) / 4096;
    CHECK(static_cast<double>(bound.words) < loss_small_coefficient(theta) * n * n);
  }
  const Bound figure = loss_large(extent, {}, 32768);
  CHECK(figure.leading == 8 * n * n * 4096 / 32768);
  CHECK(figure.label() == "leading order, no lower bound (verified)");
}

TEST_CASE("loss gradient of one key and impossible sizes", "[io][bounds]") {
  for (const Bound& bound : loss_bounds({1, 4}, {}, 16)) CHECK_FALSE(bound.applies());
  CHECK_THROWS_AS(compulsory_loss({0, 4}, {}), InvalidProblem);
  CHECK_THROWS_AS(loss_bounds({4, 0}, {}, 16), InvalidProblem);
  CHECK_THROWS_AS(loss_bounds({4, 4}, {}, 0), InvalidProblem);
}

}  // namespace
}  // namespace attest::io
