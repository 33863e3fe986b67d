#include "core/dtype.hpp"

#include <Eigen/Core>
#include <bit>
#include <cmath>
#include <limits>

#include "core/dtype_range.hpp"
#include "core/element.hpp"
#include "core/tensor.hpp"
#include "core/testing/catch.hpp"

namespace attest {
namespace {

bool same_f16(std::uint16_t a, std::uint16_t b) { return a == b; }

TEST_CASE("every f16 and bf16 bit pattern survives the trip through float", "[core][dtype]") {
  for (std::uint32_t bits = 0; bits < 0x10000u; ++bits) {
    const auto pattern = static_cast<std::uint16_t>(bits);
    if (const float x = float_from_f16(pattern); std::isnan(x)) {
      REQUIRE(std::isnan(float_from_f16(f16_from_float(x))));
    } else if (!same_f16(f16_from_float(x), pattern)) {
      FAIL("f16 pattern " << bits);
    }
    if (const float x = float_from_bf16(pattern); std::isnan(x)) {
      REQUIRE(std::isnan(float_from_bf16(bf16_from_float(x))));
    } else if (bf16_from_float(x) != pattern) {
      FAIL("bf16 pattern " << bits);
    }
  }
}

// clang 14 has the macro but not the type; Eigen's half is compared with below.
#if defined(__FLT16_MAX__) && !defined(__clang__)
TEST_CASE("f16 conversion is exact: it equals the compiler's _Float16", "[core][dtype]") {
  for (std::uint64_t bits = 0; bits < 0x100000000u; bits += 4099) {
    const float x = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    if (std::isnan(x)) continue;
    const auto expected = std::bit_cast<std::uint16_t>(static_cast<_Float16>(x));
    if (!same_f16(f16_from_float(x), expected)) FAIL("float bits " << bits);
  }
}
#endif

TEST_CASE("bf16 conversion rounds to nearest even", "[core][dtype]") {
  for (std::uint64_t bits = 0; bits < 0x7f7f0000u; bits += 4099) {
    const float x = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    const std::uint16_t low = static_cast<std::uint16_t>(bits >> 16);
    const double below = float_from_bf16(low);
    const double above = float_from_bf16(static_cast<std::uint16_t>(low + 1));
    const double to_below = double{x} - below;
    const double to_above = above - double{x};
    const bool up = to_above < to_below || (to_above == to_below && (low & 1u) != 0u);
    REQUIRE(bf16_from_float(x) == low + (up ? 1 : 0));
  }
}

TEST_CASE("both 16-bit conversions equal Eigen's", "[core][dtype]") {
  for (std::uint64_t bits = 0; bits < 0x100000000u; bits += 1031) {
    const float x = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    if (std::isnan(x)) continue;
    const auto half = Eigen::numext::bit_cast<std::uint16_t>(Eigen::half(x));
    const auto brain = Eigen::numext::bit_cast<std::uint16_t>(Eigen::bfloat16(x));
    if (f16_from_float(x) != half) FAIL("f16 of float bits " << bits);
    if (bf16_from_float(x) != brain) FAIL("bf16 of float bits " << bits);
  }
  for (std::uint32_t bits = 0; bits < 0x10000u; ++bits) {
    const auto pattern = static_cast<std::uint16_t>(bits);
    const auto half = static_cast<float>(Eigen::numext::bit_cast<Eigen::half>(pattern));
    const auto brain = static_cast<float>(Eigen::numext::bit_cast<Eigen::bfloat16>(pattern));
    if (std::isnan(half)) {
      REQUIRE(std::isnan(float_from_f16(pattern)));
    } else {
      REQUIRE(float_from_f16(pattern) == half);
    }
    if (std::isnan(brain)) {
      REQUIRE(std::isnan(float_from_bf16(pattern)));
    } else {
      REQUIRE(float_from_bf16(pattern) == brain);
    }
  }
}

TEST_CASE("ulp is the distance to the next value", "[dtype]") {
  for (const double x : {1.0, -1.5, 0.75, 3e-39, 1e-45, 2.5e30}) {
    INFO(x);
    const auto value = static_cast<float>(x);
    const float next = std::nextafter(std::abs(value), std::numeric_limits<float>::infinity());
    CHECK(ulp(DType::f32, value) == static_cast<double>(next) - std::abs(value));
    const auto bits = bf16_from_float(std::abs(value));
    CHECK(ulp(DType::bf16, float_from_bf16(bits)) ==
          float_from_bf16(static_cast<std::uint16_t>(bits + 1)) - float_from_bf16(bits));
    CHECK(ulp(DType::f64, x) ==
          std::nextafter(std::abs(x), std::numeric_limits<double>::infinity()) - std::abs(x));
  }
  for (const int pattern : {1, 0x3ff, 0x400, 0x3c00, 0x7bfe}) {
    const auto bits = static_cast<std::uint16_t>(pattern);
    CHECK(ulp(DType::f16, float_from_f16(bits)) ==
          float_from_f16(static_cast<std::uint16_t>(bits + 1)) - float_from_f16(bits));
  }
  CHECK(ulp(DType::f16, 0) == 0x1p-24);
}

TEST_CASE("the range of a dtype follows from its row", "[dtype]") {
  CHECK(smallest_normal(DType::f64) == std::numeric_limits<double>::min());
  CHECK(smallest_normal(DType::f32) == std::numeric_limits<float>::min());
  CHECK(smallest_normal(DType::bf16) == 0x1p-126);
  CHECK(smallest_normal(DType::f16) == 0x1p-14);
  for (const DType dtype : all_dtypes()) CHECK(has_narrow_range(dtype) == (dtype == DType::f16));
  CHECK(dtypes_in_float32() == (1u << ATTEST_F32 | 1u << ATTEST_BF16 | 1u << ATTEST_F16));
}

TEST_CASE("an element is stored in the bits of its dtype", "[dtype]") {
  for (const DType dtype : all_dtypes()) {
    visit_element(dtype, [&](auto element) {
      CHECK(8 * sizeof(typename decltype(element)::Stored) == facts(dtype).bits);
      for (const float value : {-1.5f, 0.0f, 3.0f}) {
        CHECK(element.load(element.store(value)) == value);
        CHECK(static_cast<double>(element.load(element.store(value))) == round_to(dtype, value));
      }
    });
  }
}

}  // namespace
}  // namespace attest
