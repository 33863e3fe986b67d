#include <algorithm>
#include <cmath>

#include "proptest/truth.hpp"

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

}  // namespace

// Sums in f16 stay clear of its range where no order of the terms can leave it: of scores, of
// values whose weights are at most 1, and of gradients.
bool Truth::sums_fit_f16() const {
  constexpr double kLargest = 3e4;
  const double Q = largest_row_norm(values_.Q), K = largest_row_norm(values_.K),
               V = largest_row_norm(values_.V);
  const double scale = std::max(1.0, std::abs(problem_.scale()));
  if (!(scale * Q * K < kLargest &&
        static_cast<double>(problem_.seqlen_k) * largest(values_.V) < kLargest)) {
    return false;
  }
  if (direction_ == Direction::forward) return true;
  const double rows = static_cast<double>(problem_.seqlen_q * problem_.group_size()),
               dO = largest_row_norm(values_.dO),
               dLSE = cotangents_.dLSE == nullptr ? 0 : largest(values_.dLSE);
  // |dP - delta|, of which dS is a part no larger than P.
  const double difference = 2 * dO * V + dLSE;
  return difference * scale * std::max(K, rows * Q) < kLargest &&
         rows * largest(values_.dO) < kLargest;
}

bool Truth::in_domain() const {
  // Scores may err by a few units of their last place; in float32 exp must not overflow for that,
  // nor q.k itself.
  constexpr double kLargestExponent = 80, kLargestProduct = 1e37;
  const double products = largest_row_norm(values_.Q) * largest_row_norm(values_.K);
  const double rounding =
      4 * numerics_.accumulator_roundoff * std::abs(problem_.scale()) * products;
  if (problem_.dtype != DType::f64 &&
      !(rounding < kLargestExponent && products < kLargestProduct)) {
    return false;
  }
  if (numerics_.accumulator_roundoff == unit_roundoff(DType::f16) && !sums_fit_f16()) return false;
  if (problem_.dtype != DType::f16 || direction_ == Direction::forward) return true;
  constexpr double kLargest = 3e4;
  double dP = 0;
  if (numerics_.p_roundoff > 0) {
    // |dS| <= |dP - delta| <= 2 |dO| |V| for every row and key.
    dP = 2 * largest_row_norm(values_.dO) * largest_row_norm(values_.V);
  }
  return dP < kLargest && largest(backward_.dQ) < kLargest && largest(backward_.dK) < kLargest &&
         largest(backward_.dV) < kLargest;
}

}  // namespace attest::proptest
