#include "gpu/ptx/arithmetic/half_values.hpp"

#include <bit>

#include "core/testing/catch.hpp"

namespace attest::ptx {
namespace {

// Every 251st number of float32, so that all exponents and all endings are among them.
TEST_CASE("the nearest half without a branch has the bits of the conversion", "[ptx]") {
  std::size_t wrong_f16 = 0, wrong_bf16 = 0;
  for (std::uint64_t bits = 0; bits >> 32 == 0; bits += 251) {
    const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    const bool is_nan = value != value;
    wrong_f16 += F16::nearest(value) != (is_nan ? F16::kNaN : f16_from_float(value)) ? 1 : 0;
    wrong_bf16 += Bf16::nearest(value) != (is_nan ? Bf16::kNaN : bf16_from_float(value)) ? 1 : 0;
  }
  CHECK(wrong_f16 == 0);
  CHECK(wrong_bf16 == 0);
}

}  // namespace
}  // namespace attest::ptx
