#include <algorithm>
#include <cmath>

#include "gpu/ptx/arithmetic/formats.hpp"
#include "gpu/ptx/arithmetic/half_values.hpp"
#include "gpu/ptx/arithmetic/lanes.hpp"
#include "gpu/simt/tensor_core/factor.hpp"

/// cvt between pairs of 8-bit floats and pairs of f16, or float32. Beyond the largest number there
/// is none: .satfinite stops there.
namespace attest::ptx {
namespace {

struct E4m3 {
  static constexpr Format kFormat{4, -6, 8};
  static constexpr double kLargest = 448.0;
  static constexpr int kFractionBits = 3;
  static float decode(std::uint8_t bits) { return simt::float_from_e4m3(bits); }
};
struct E5m2 {
  static constexpr Format kFormat{3, -14, 15};
  static constexpr double kLargest = 57344.0;
  static constexpr int kFractionBits = 2;
  static float decode(std::uint8_t bits) { return simt::float_from_e5m2(bits); }
};

template <class Byte>
std::uint32_t encode_byte(double value, bool relu) {
  constexpr std::uint32_t kNaN = 0x7F, kSign = 0x80;
  if (value != value) return kNaN;
  if (relu && value <= 0.0) return 0;
  // Rounded, then cut off: e4m3's largest number lies below what its format could hold.
  const double most = std::min(std::fabs(value), Byte::kLargest);
  const double magnitude =
      std::min(rounded(most, Byte::kFormat, Rounding::nearest), Byte::kLargest);
  const int exponent = magnitude == 0.0
                           ? Byte::kFormat.least_exponent
                           : std::max(std::ilogb(magnitude), Byte::kFormat.least_exponent);
  // In units of the last place; normal numbers have the hidden bit, which counts the exponent up.
  const auto units =
      static_cast<std::uint32_t>(std::ldexp(magnitude, Byte::kFractionBits - exponent));
  const auto above = static_cast<std::uint32_t>(exponent - Byte::kFormat.least_exponent);
  return (units + (above << Byte::kFractionBits)) | (std::signbit(value) ? kSign : 0);
}

template <class Byte, bool kRelu>
void pack_floats(Warp& warp, const Instruction& in) {
  each_lane<std::uint16_t, float, float>(warp, in, [](float high, float low) {
    const auto byte = [](float value) {
      return encode_byte<Byte>(static_cast<double>(value), kRelu);
    };
    return static_cast<std::uint16_t>(byte(high) << 8 | byte(low));
  });
}

template <class Byte, bool kRelu>
void pack_halves(Warp& warp, const Instruction& in) {
  each_lane<std::uint16_t, std::uint32_t>(warp, in, [](std::uint32_t pair) {
    const auto byte = [pair](int shift) {
      return encode_byte<Byte>(F16::decode(static_cast<std::uint16_t>(pair >> shift)), kRelu);
    };
    return static_cast<std::uint16_t>(byte(16) << 8 | byte(0));
  });
}

template <class Byte, bool kRelu>
void unpack(Warp& warp, const Instruction& in) {
  each_lane<std::uint32_t, std::uint16_t>(warp, in, [](std::uint16_t pair) {
    const auto half = [pair](int shift) -> std::uint32_t {
      const float value = Byte::decode(static_cast<std::uint8_t>(pair >> shift));
      if (kRelu && value <= 0.0F) return 0;
      return F16::nearest(value);
    };
    return half(8) << 16 | half(0);
  });
}

enum class Way : std::uint8_t { from_floats, from_halves, to_halves };

template <Way kWay, class Byte, bool kRelu>
constexpr Execute kRun = kWay == Way::from_floats   ? pack_floats<Byte, kRelu>
                         : kWay == Way::from_halves ? pack_halves<Byte, kRelu>
                                                    : unpack<Byte, kRelu>;

template <Way kWay>
Execute convert(const Spelling& spelling, Instruction&) {
  if (spelling.has("e4m3x2")) {
    return spelling.has("relu") ? kRun<kWay, E4m3, true> : kRun<kWay, E4m3, false>;
  }
  return spelling.has("relu") ? kRun<kWay, E5m2, true> : kRun<kWay, E5m2, false>;
}

constexpr Form kForms[] = {
    {"cvt.rn.satfinite[.relu](.e4m3x2|.e5m2x2).f32", "d:b16 a:f32 b:f32",
     convert<Way::from_floats>},
    {"cvt.rn.satfinite[.relu](.e4m3x2|.e5m2x2).f16x2", "d:b16 a:b32", convert<Way::from_halves>},
    {"cvt.rn[.relu].f16x2(.e4m3x2|.e5m2x2)", "d:b32 a:b16", convert<Way::to_halves>},
};

}  // namespace

std::span<const Form> eight_bit_forms() { return kForms; }

}  // namespace attest::ptx
