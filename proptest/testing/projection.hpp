#pragma once

#include <cmath>
#include <cstdint>

#include "core/tensor.hpp"

namespace attest::proptest {

/// |<error, exact>| in units of its typical size, rows of the last axis independent: errors that
/// all point along the result add up. No kernel is refused for it.
inline double projection(const Tensor& got, const Tensor& exact, const Tensor& sigma) {
  constexpr double kTiny = 1e-300;  // nothing but zeros projects to 0
  double along = 0, square = 0;
  for (std::int64_t i = 0; i < exact.view().extent(1); ++i) {
    double row = 0;
    for (std::int64_t c = 0; c < exact.view().extent(3); ++c) {
      along += (got(0, i, 0, c) - exact(0, i, 0, c)) * exact(0, i, 0, c);
      row += std::abs(exact(0, i, 0, c)) * sigma(0, i, 0, c);
    }
    square += row * row;
  }
  return std::abs(along) / std::sqrt(square + kTiny);
}

/// Right kernels stay below.
inline constexpr double kProjectionReported = 5;

}  // namespace attest::proptest
