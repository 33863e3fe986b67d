#include "gpu/ptx/arithmetic/floating.hpp"
#include "gpu/ptx/arithmetic/half_values.hpp"

/// cvt of two values to a pair of 16 bits.
namespace attest::ptx {
namespace {

// Two values into one register, the first operand in the high half.
template <class Half>
void run_pack(Warp& warp, const Instruction& in) {
  each_lane<std::uint32_t, float, float>(warp, in, [&in](float high, float low) {
    const auto rounded_half = [&in](float value) {
      if (in.variant != 0) value = value != value ? value : FloatMax{}(value, 0.0F);  // .relu
      return std::uint32_t{encode<Half>(value, in.rounding)};
    };
    return rounded_half(high) << 16 | rounded_half(low);
  });
}
// The same without a choice for each lane: probabilities become factors by it.
template <class Half>
void run_pack_nearest(Warp& warp, const Instruction& in) {
  each_lane<std::uint32_t, float, float>(warp, in, [](float high, float low) {
    return std::uint32_t{Half::nearest(high)} << 16 | Half::nearest(low);
  });
}
Execute pack(const Spelling& spelling, Instruction& in) {
  in.variant = spelling.has("relu") ? 1 : 0;
  const bool is_f16 = spelling.first_type() == Type::f16x2;
  if (in.variant == 0 && in.rounding == Rounding::nearest) {
    return is_f16 ? run_pack_nearest<F16> : run_pack_nearest<Bf16>;
  }
  return is_f16 ? run_pack<F16> : run_pack<Bf16>;
}

constexpr Form kForms[] = {
    {"cvt(.rn|.rz)[.relu](.f16x2|.bf16x2).f32", "d a b", pack},
};

}  // namespace

std::span<const Form> half_pair_forms() { return kForms; }

}  // namespace attest::ptx
