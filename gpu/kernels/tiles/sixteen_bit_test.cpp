#include "gpu/kernels/tiles/sixteen_bit.cuh"

#include <bit>
#include <cmath>

#include "core/dtype/dtype.hpp"
#include "core/testing/catch.hpp"

namespace attest::gpu {
namespace {

bool equal(float a, float b) {
  return std::isnan(a) ? std::isnan(b)
                       : std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

TEST_CASE("16-bit floats widen exactly", "[gpu][sixteen_bit]") {
  for (std::uint32_t pattern = 0; pattern < 0x10000U; ++pattern) {
    const auto bits = static_cast<std::uint16_t>(pattern);
    if (!equal(to_float(Bf16{bits}), float_from_bf16(bits))) FAIL("bf16 " << pattern);
    if (!equal(to_float(F16{bits}), float_from_f16(bits))) FAIL("f16 " << pattern);
  }
  SUCCEED();
}

TEST_CASE("floats are rounded to 16 bits as elsewhere", "[gpu][sixteen_bit]") {
  const auto check = [](std::uint32_t bits) {
    const auto value = std::bit_cast<float>(bits);
    const std::uint16_t brain = rounded<Bf16>(value).bits, half = rounded<F16>(value).bits;
    if (!equal(float_from_bf16(brain), float_from_bf16(bf16_from_float(value)))) {
      FAIL("bf16 of float bits " << bits);
    }
    if (!equal(float_from_f16(half), float_from_f16(f16_from_float(value)))) {
      FAIL("f16 of float bits " << bits);
    }
  };
  for (std::uint64_t bits = 0; bits < 0x100000000U; bits += 1031) {
    check(static_cast<std::uint32_t>(bits));
  }
  // Every halfway point of both formats, and what lies beside.
  for (std::uint32_t top = 0; top < 0x80000U; ++top) {
    for (const std::uint32_t low : {0U, 1U, 0x0FFFU, 0x1000U, 0x1001U, 0x1FFFU}) {
      check(top << 13U | low);
    }
  }
  SUCCEED();
}

}  // namespace
}  // namespace attest::gpu
