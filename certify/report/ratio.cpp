#include "certify/report/ratio.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <tuple>

namespace attest::certify {

std::size_t ratio_bin(double ratio) {
  constexpr std::size_t kLast = std::tuple_size_v<RatioHistogram> - 1;
  std::size_t bin = 0;
  for (double edge = 0.5; bin < kLast && ratio <= edge; edge /= 2) ++bin;
  return bin;
}

std::string error_ratio_text(double ratio) {
  constexpr double kLong = 1000;
  if (std::isinf(ratio)) return "infinite";
  return ratio < kLong ? fmt::format("{:.3f}", ratio) : fmt::format("{:.3g}", ratio);
}

double ratio_in(const nlohmann::json& value) {
  return value.is_null() ? std::numeric_limits<double>::infinity() : value.get<double>();
}

}  // namespace attest::certify
