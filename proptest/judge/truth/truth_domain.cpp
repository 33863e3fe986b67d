#include <algorithm>
#include <cmath>

#include "core/dtype/dtype_range.hpp"
#include "proptest/judge/truth/truth.hpp"

/// For which values no overflow keeps a correct kernel from its bounds.
namespace attest::proptest {
namespace {

double largest(const Tensor& tensor) {
  double value = 0;
  for (std::int64_t e = 0; e < tensor.view().size(); ++e) {
    value = std::max(value, std::abs(tensor.doubles()[e]));
  }
  return value;
}

// The largest Euclidean norm over the last axis.
double largest_row_norm(const Tensor& tensor) {
  const std::int64_t columns = std::max<std::int64_t>(tensor.view().extent(3), 1);
  double most = 0, square = 0;
  for (std::int64_t e = 0; e < tensor.view().size(); ++e) {
    square = (e % columns == 0 ? 0 : square) + tensor.doubles()[e] * tensor.doubles()[e];
    most = std::max(most, square);
  }
  return std::sqrt(most);
}

// Sums in f16 stay clear of this where no order of the terms can leave its range.
constexpr double kLargestInF16 = 3e4;

}  // namespace

// The sums of scores, and of values whose weights are at most 1.
bool Truth::scores_fit_f16() const {
  const double scale = std::max(1.0, std::abs(problem_.scale()));
  return scale * largest_row_norm(values_.Q) * largest_row_norm(values_.K) < kLargestInF16 &&
         static_cast<double>(problem_.seqlen_k) * largest(values_.V) < kLargestInF16;
}

// The sums of gradients: of dQ over keys, whose weights sum to 1, of dK and dV over the rows of all
// heads that share a key.
bool Truth::gradients_fit_f16() const {
  const double Q = largest_row_norm(values_.Q), K = largest_row_norm(values_.K),
               V = largest_row_norm(values_.V), dO = largest_row_norm(values_.dO),
               dLSE = cotangents_.dLSE == nullptr ? 0 : largest(values_.dLSE);
  const double scale = std::max(1.0, std::abs(problem_.scale()));
  // |dP - delta|, of which dS is a part no larger than P.
  const double difference = 2 * dO * V + dLSE, weight = heaviest_key();
  return difference * scale * std::max(K, weight * Q) < kLargestInF16 &&
         weight * largest(values_.dO) < kLargestInF16;
}

// The largest sum of a key's weights over rows: dV where every dO is 1.
double Truth::heaviest_key() const {
  Tensor ones = values_.dO;
  std::fill_n(ones.doubles(), ones.view().size(), 1.0);
  const reference::Cotangents cotangents{ones.view(), nullptr};
  return largest(reference::backward(problem_, values_.Q.view(), values_.K.view(), values_.V.view(),
                                     cotangents)
                     .dV);
}

bool Truth::in_domain() const {
  // Scores may err by a few units of their last place; in float32 exp must not overflow for that,
  // nor q.k itself.
  constexpr double kLargestExponent = 80, kLargestProduct = 1e37;
  const double products = largest_row_norm(values_.Q) * largest_row_norm(values_.K);
  const double rounding = (4 * numerics_.accumulator_roundoff + 2 * numerics_.score_roundoff) *
                          std::abs(problem_.scale()) * products;
  if (problem_.dtype != DType::f64 &&
      !(rounding < kLargestExponent && products < kLargestProduct)) {
    return false;
  }
  const bool every_sum = has_narrow_range(numerics_.accumulator_roundoff);
  const bool of_gradients = every_sum || has_narrow_range(numerics_.dq_roundoff) ||
                            has_narrow_range(numerics_.dkv_roundoff) ||
                            has_narrow_range(numerics_.dp_roundoff) ||
                            has_narrow_range(numerics_.score_roundoff) ||
                            has_narrow_range(numerics_.gqa_partial_roundoff) ||
                            has_narrow_range(numerics_.gqa_sum_roundoff);
  const bool scores = every_sum || has_narrow_range(numerics_.score_roundoff);
  if (scores && !scores_fit_f16()) return false;
  if (of_gradients && direction_ != Direction::forward && !gradients_fit_f16()) return false;
  if (!has_narrow_range(problem_.dtype) || direction_ == Direction::forward) return true;
  double dP = 0;
  if (numerics_.p_roundoff > 0) {
    // |dS| <= |dP - delta| <= 2 |dO| |V| for every row and key; it may be scaled before its cast.
    dP = 2 * largest_row_norm(values_.dO) * largest_row_norm(values_.V) *
         std::max(1.0, std::abs(problem_.scale()));
  }
  return dP < kLargestInF16 && largest(backward_.dQ) < kLargestInF16 &&
         largest(backward_.dK) < kLargestInF16 && largest(backward_.dV) < kLargestInF16 &&
         (problem_.bias.single || largest(backward_.dBias) < kLargestInF16);
}

}  // namespace attest::proptest
