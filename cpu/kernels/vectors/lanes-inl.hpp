// Vectors of one target: included once for each by the files that foreach_target.h repeats.
#if defined(ATTEST_CPU_LANES) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTEST_CPU_LANES
#undef ATTEST_CPU_LANES
#else
#define ATTEST_CPU_LANES
#endif

#include <hwy/highway.h>

#include <cstdint>

#ifdef __FAST_MATH__
#error "fast-math changes what these kernels promise"
#endif

// Before a loop over registers.
#undef ATTEST_UNROLL
#if defined(__clang__)
#define ATTEST_UNROLL _Pragma("clang loop unroll(full)")
#else
#define ATTEST_UNROLL _Pragma("GCC unroll 32")
#endif

HWY_BEFORE_NAMESPACE();
namespace attest::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using Integers = hn::RebindToSigned<Floats>;
using V = hn::Vec<Floats>;
constexpr Floats kFloats;
constexpr Integers kIntegers;
constexpr std::int64_t kWidth = static_cast<std::int64_t>(hn::MaxLanes(kFloats));

HWY_INLINE V load(const float* p) { return hn::LoadU(kFloats, p); }
HWY_INLINE void store(V v, float* p) { hn::StoreU(v, kFloats, p); }
HWY_INLINE V set(float x) { return hn::Set(kFloats, x); }

// x where it is above y, else y: a NaN in x is passed over.
HWY_INLINE V larger(V x, V y) {
#if HWY_ARCH_X86
  return hn::Max(x, y);
#else
  return hn::IfThenElse(hn::Gt(x, y), x, y);
#endif
}

// Two numbers in bf16 lie in the bits of a float, the first in the lower half.
HWY_INLINE V first_of_pair(V pair) {
  return hn::BitCast(kFloats, hn::ShiftLeft<16>(hn::BitCast(kIntegers, pair)));
}
HWY_INLINE V second_of_pair(V pair) {
  const auto upper = hn::Set(kIntegers, std::int32_t{-0x10000});
  return hn::BitCast(kFloats, hn::And(hn::BitCast(kIntegers, pair), upper));
}

// The bits of x rounded to bf16, in the upper half; NaN stays NaN.
HWY_INLINE auto bf16_bits(V x) {
  const auto bits = hn::BitCast(kIntegers, x);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(kIntegers, std::int32_t{1}));
  const auto rounded = hn::Add(bits, hn::Add(odd, hn::Set(kIntegers, std::int32_t{0x7fff})));
  const auto quiet = hn::Or(bits, hn::Set(kIntegers, std::int32_t{0x400000}));
  const auto is_nan = hn::RebindMask(kIntegers, hn::IsNaN(x));
  return hn::And(hn::IfThenElse(is_nan, quiet, rounded),
                 hn::Set(kIntegers, std::int32_t{-0x10000}));
}

HWY_INLINE V paired(V first, V second) {
  constexpr hn::RebindToUnsigned<Floats> kUnsigned;
  const auto lower = hn::ShiftRight<16>(hn::BitCast(kUnsigned, bf16_bits(first)));
  return hn::BitCast(kFloats, hn::Or(lower, hn::BitCast(kUnsigned, bf16_bits(second))));
}

// p times 2^n, n an integer from -126 on and p near 1; `shifted` is n + 1.5 2^23.
HWY_INLINE V times_power(V p, V n, V shifted) {
#if HWY_TARGET == HWY_AVX3
  (void)shifted;
  return V{_mm512_scalef_ps(p.raw, n.raw)};
#else
  (void)n;
  const auto exponent = hn::ShiftLeft<23>(hn::BitCast(kIntegers, shifted));
  return hn::Mul(
      p, hn::BitCast(kFloats, hn::Add(exponent, hn::Set(kIntegers, std::int32_t{0x3f800000}))));
#endif
}

constexpr float kToInteger = 0x1.8p23f;  // added and subtracted, it rounds to an integer

// 2^t = 2^n 2^f, n = round(t), |f| <= 1/2: a polynomial of degree 6 near the best one. Zero below
// 2^-126, NaN stays, 2^0 = 1. kAny: infinite above 2^127.5; without, t is not above 127.
template <bool kAny>
HWY_INLINE V exp2(V t) {
  const V x = kAny ? hn::IfThenElse(hn::Gt(t, set(128.0f)), set(128.0f), t) : t;
  const V shifted = hn::Add(x, set(kToInteger));
  const V n = hn::Sub(shifted, set(kToInteger));
  const V f = hn::Sub(x, n);
  V p = set(0.00015345812f);
  p = hn::MulAdd(p, f, set(0.00133999312f));
  p = hn::MulAdd(p, f, set(0.00961848896f));
  p = hn::MulAdd(p, f, set(0.0555032878f));
  p = hn::MulAdd(p, f, set(0.240226469f));
  p = hn::MulAdd(p, f, set(0.693147206f));
  p = hn::MulAdd(p, f, set(1.0f));
  return hn::IfThenZeroElse(hn::Lt(t, set(-126.0f)), times_power(p, n, shifted));
}

// exp(t) = 2^n exp(r), n = round(t / ln 2), |r| <= ln 2 / 2: Taylor's polynomial of degree 7. As
// exp2 without a limit.
HWY_INLINE V exponential(V t) {
  constexpr float kLog2e = 0x1.715476p+0f;
  constexpr float kLn2High = 0x1.62e4p-1f, kLn2Low = 0x1.7f7d1cp-20f;  // n * high is exact
  constexpr float kSmallest = -0x1.5d589ep+6f, kLargest = 89.0f;       // ln 2^-126; from n = 128 on
  const V x = hn::IfThenElse(hn::Gt(t, set(kLargest)), set(kLargest), t);
  const V shifted = hn::MulAdd(x, set(kLog2e), set(kToInteger));
  const V n = hn::Sub(shifted, set(kToInteger));
  const V r = hn::NegMulAdd(n, set(kLn2Low), hn::NegMulAdd(n, set(kLn2High), x));
  V p = set(1.0f / 5040);
  p = hn::MulAdd(p, r, set(1.0f / 720));
  p = hn::MulAdd(p, r, set(1.0f / 120));
  p = hn::MulAdd(p, r, set(1.0f / 24));
  p = hn::MulAdd(p, r, set(1.0f / 6));
  p = hn::MulAdd(p, r, set(0.5f));
  p = hn::MulAdd(hn::Mul(p, r), r, r);
  p = hn::Add(p, set(1.0f));
  return hn::IfThenZeroElse(hn::Lt(t, set(kSmallest)), times_power(p, n, shifted));
}

}  // namespace attest::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // ATTEST_CPU_LANES
