#include "core/dtype/dtype.hpp"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <bit>
#include <cmath>

#include "core/testing/catch.hpp"

namespace attest {
namespace {

std::uint16_t bits_of(__half value) { return static_cast<__half_raw>(value).x; }
std::uint16_t bits_of(__nv_bfloat16 value) { return static_cast<__nv_bfloat16_raw>(value).x; }

TEST_CASE("rounding equals the CUDA toolkit's", "[core][dtype][cuda]") {
  for (std::uint64_t bits = 0; bits < 0x100000000u; bits += 1031) {
    const float x = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    // The toolkit gives every NaN one pattern; ours keeps the sign.
    if (std::isnan(x)) continue;
    if (f16_from_float(x) != bits_of(__float2half_rn(x))) FAIL("f16 of float bits " << bits);
    if (bf16_from_float(x) != bits_of(__float2bfloat16_rn(x))) FAIL("bf16 of float bits " << bits);
  }
  SUCCEED();
}

TEST_CASE("widening equals the CUDA toolkit's for every pattern", "[core][dtype][cuda]") {
  for (std::uint32_t bits = 0; bits < 0x10000u; ++bits) {
    const auto pattern = static_cast<std::uint16_t>(bits);
    const __half_raw half{pattern};
    const float f16 = float_from_f16(pattern);
    if (!std::isnan(f16) || !std::isnan(__half2float(half))) {
      REQUIRE(std::bit_cast<std::uint32_t>(f16) ==
              std::bit_cast<std::uint32_t>(__half2float(half)));
    }
    const __nv_bfloat16_raw brain{pattern};
    const float bf16 = float_from_bf16(pattern);
    if (!std::isnan(bf16) || !std::isnan(__bfloat162float(brain))) {
      REQUIRE(std::bit_cast<std::uint32_t>(bf16) ==
              std::bit_cast<std::uint32_t>(__bfloat162float(brain)));
    }
  }
}

}  // namespace
}  // namespace attest
