#include "io/bounds/dense/coefficients.hpp"

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "core/testing/catch.hpp"
#include "io/bounds/dense/backward.hpp"
#include "io/bounds/dense/forward.hpp"

namespace attest::io {
namespace {

// The value printed with `digits` digits after the point.
std::string printed(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

TEST_CASE("the table of best constants", "[io][bounds]") {
  struct Row {
    double theta, forward, forward_lower, flash_attention, square_tiled, backward;
    const char* backward_lower;
    int digits;
  };
  for (const Row& row :
       {Row{1. / 64, 33, 31, 768, 65, 83, "71.6", 1}, Row{1. / 4, 9, 7, 48, 17, 23, "16.4", 1},
        Row{1, 4, 3, 12, 9, 10, "7.20", 2}, Row{4, 1, 1, 3, 5, 3.5, "2.93", 2},
        Row{16, .25, .25, .75, 3.5, .875, "0.75", 2},
        Row{64, .0625, .0625, .1875, 2.75, .21875, "0.1875", 4}}) {
    INFO("theta " << row.theta);
    CHECK(best_forward_coefficient(row.theta) == row.forward);
    CHECK(forward_lower_coefficient(row.theta) == row.forward_lower);
    CHECK(flash_attention_coefficient(row.theta) == row.flash_attention);
    CHECK(square_tiled_coefficient(row.theta) == row.square_tiled);
    CHECK(best_backward_coefficient(row.theta) == row.backward);
    CHECK(printed(backward_lower_coefficient(row.theta), row.digits) == row.backward_lower);
  }
  CHECK(printed(backward_lower_coefficient(2), 2) == "4.50");
  CHECK(printed(backward_lower_coefficient(8), 2) == "1.50");
  CHECK(hybrid_coefficient(0.5) == Approx(6));  // the ideal tile would give 5.83
  CHECK(printed(loss_large_direct_coefficient(8) * 8, 2) == "9.33");
  CHECK(printed(loss_large_direct_coefficient(64) * 64, 2) == "8.13");
  CHECK(loss_large_direct_coefficient(6) == Approx(loss_large_coefficient(6)));
  CHECK(loss_small_coefficient(1. / 4) == 16);
  CHECK(column_groups_coefficient(64, 128, 16384) == 2);
  CHECK(column_groups_coefficient(128, 64, 36864) == 1);
}

TEST_CASE("forward best over lower is at most 4/3, backward best never below lower",
          "[io][bounds]") {
  double worst = 0;
  for (int step = -100; step <= 100; ++step) {
    const double theta = std::exp2(0.1 * step);
    const double ratio = best_forward_coefficient(theta) / forward_lower_coefficient(theta);
    worst = std::max(worst, ratio);
    CHECK(ratio >= 1);
    CHECK(best_backward_coefficient(theta) > backward_lower_coefficient(theta));
  }
  CHECK(worst == best_forward_coefficient(1) / forward_lower_coefficient(1));
  // The schedules cross where the design says that they do.
  CHECK(rolling_p_coefficient(4. / 3) == Approx(key_stationary_ds_coefficient(4. / 3)));
  CHECK(two_pass_row_coefficient(2.5) == Approx(key_stationary_ds_coefficient(2.5)));
  CHECK(hybrid_coefficient(1) == flash2_row_coefficient(1));
  CHECK(hybrid_coefficient(0.25) == rank1_tiled_coefficient(0.25));
}

TEST_CASE("a coefficient refuses a theta without meaning", "[io][bounds]") {
  CHECK_THROWS_AS(flash2_row_coefficient(0), InvalidProblem);
  CHECK_THROWS_AS(best_backward_coefficient(-1), InvalidProblem);
  CHECK_THROWS_AS(loss_large_direct_coefficient(2), InvalidProblem);
  CHECK_THROWS_AS(forward_lower_coefficient(std::nan("")), InvalidProblem);
  CHECK_THROWS_AS(column_groups_coefficient(0, 1, 1), InvalidProblem);
}

}  // namespace
}  // namespace attest::io
