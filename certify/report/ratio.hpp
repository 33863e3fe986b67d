#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

/// The worst error over bound of an output, as certificates hold it: infinite where a value is NaN
/// or infinite and should not be, or should be and is not, and where the bound is zero.
namespace attest::certify {

/// Counts of the worst error over bound of a check: bin k holds those in (2^-(k+1), 2^-k], the last
/// bin everything below.
using RatioHistogram = std::array<std::uint64_t, 16>;

/// The bin of a ratio from 0 to 1.  [certify/report/ratio_test "bins"]
std::size_t ratio_bin(double ratio);

/// For people: three decimals, from 1000 on three digits, "infinite" for an infinite one.
/// [certify/report/ratio_test "for people"]
std::string error_ratio_text(double ratio);

/// As read from JSON, which has no infinity: null is one.  [certify/report/ratio_test "null"]
double ratio_in(const nlohmann::json& value);

}  // namespace attest::certify
