#include "io/bounds/dense/coefficients.hpp"

#include <algorithm>
#include <cmath>

#include "core/error.hpp"

namespace attest::io {
namespace {

// a = d / sqrt(M).
double inverse_root(double theta) {
  if (!(theta > 0)) throw InvalidProblem("theta = M/d^2 must be positive");
  return 1 / std::sqrt(theta);
}

}  // namespace

double rank1_coefficient(double theta) {
  const double a = inverse_root(theta);
  // The minimum over the reals is at c = a; over whole numbers at one of its neighbours.
  const double below = std::max(std::floor(a), 1.0);
  const double above = std::max(std::ceil(a), 1.0);
  return std::min(below + a * a / below, above + a * a / above);
}

double flash2_row_coefficient(double theta) {
  const double a = inverse_root(theta);
  return 4 * a * a;
}

double hybrid_coefficient(double theta) {
  const double a = inverse_root(theta);
  return a * a + 1 + rank1_coefficient(theta);
}

double rank1_tiled_coefficient(double theta) {
  return 2 * inverse_root(theta) + 1 + rank1_coefficient(theta);
}

double flash_attention_coefficient(double theta) {
  const double a = inverse_root(theta);
  return 12 * a * a;
}

double square_tiled_coefficient(double theta) {
  const double a = inverse_root(theta);
  return theta <= 4 ? 8 * a + 1 : 6 * a + 2;
}

double two_pass_row_coefficient(double theta) {
  const double a = inverse_root(theta);
  return 14 * a * a;
}

double key_stationary_coefficient(double theta) {
  const double a = inverse_root(theta);
  return 16 * a * a;
}

double key_stationary_ds_coefficient(double theta) {
  const double a = inverse_root(theta);
  return 8 * a * a + 1 + rank1_coefficient(theta);
}

double query_stationary_p_coefficient(double theta) {
  const double a = inverse_root(theta);
  return 2 * a * a + 3 * rank1_coefficient(theta) + 3;
}

double rolling_p_coefficient(double theta) {
  const double a = inverse_root(theta);
  return 5 * a * a + 5;
}

double rank1_tiled_bwd_coefficient(double theta) {
  return 4 * inverse_root(theta) + 3 * rank1_coefficient(theta) + 3;
}

double loss_large_coefficient(double theta) {
  const double a = inverse_root(theta);
  return 10 * a * a;
}

double loss_large_direct_coefficient(double theta) {
  if (!(theta > 2)) throw InvalidProblem("theta = M/d^2 must exceed 2: X and its gradient stay");
  return 4 / theta + 4 / (theta - 2);
}

double loss_small_coefficient(double theta) { return 8 * inverse_root(theta); }

double column_groups_coefficient(double head_dim_qk, double head_dim_v, double fast_words) {
  if (!(head_dim_qk >= 1 && head_dim_v >= 1 && fast_words >= 1)) {
    throw InvalidProblem("head dimensions and fast_words must be at least 1");
  }
  const double both = head_dim_qk + head_dim_v;
  const double words = head_dim_v > head_dim_qk ? 4 * head_dim_qk * head_dim_v : both * both;
  return words / fast_words;
}

double best_forward_coefficient(double theta) {
  return std::min(
      {flash2_row_coefficient(theta), hybrid_coefficient(theta), rank1_tiled_coefficient(theta)});
}

double best_backward_coefficient(double theta) {
  return std::min({two_pass_row_coefficient(theta), key_stationary_ds_coefficient(theta),
                   rolling_p_coefficient(theta), query_stationary_p_coefficient(theta),
                   rank1_tiled_bwd_coefficient(theta)});
}

}  // namespace attest::io
