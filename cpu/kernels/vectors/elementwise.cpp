// Elements and rows, in every target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/kernels/vectors/elementwise.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h comes first.
#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>

#include "core/dtype/dtype.hpp"
#include "cpu/kernels/vectors/arithmetic.hpp"
#include "cpu/kernels/vectors/lanes-inl.hpp"
#include "cpu/kernels/vectors/target.hpp"

HWY_BEFORE_NAMESPACE();
namespace attest::cpu::HWY_NAMESPACE {

constexpr std::int64_t kChains = 16;  // partial results of a reduction
static_assert(kChains % kWidth == 0);
constexpr std::int64_t kParts = kChains / kWidth;

// The sum of the chains, pair by pair.
HWY_INLINE float fold(const V (&part)[kParts]) {
  float lane[kChains];
  ATTEST_UNROLL
  for (std::int64_t p = 0; p < kParts; ++p) store(part[p], lane + p * kWidth);
  for (std::int64_t c = 0; c < 8; ++c) lane[c] += lane[c + 8];
  for (std::int64_t c = 0; c < 4; ++c) lane[c] += lane[c + 4];
  return (lane[0] + lane[2]) + (lane[1] + lane[3]);
}

// visit(part, elements) for the chains' vectors of x and y, in ascending order; after the last
// element come `filler`s.
template <class Visit>
HWY_INLINE void for_chains(const float* x, std::int64_t count, float filler, const Visit& visit) {
  std::int64_t i = 0;
  for (; i + kChains <= count; i += kChains) {
    ATTEST_UNROLL
    for (std::int64_t p = 0; p < kParts; ++p) visit(p, i + p * kWidth, load(x + i + p * kWidth));
  }
  if (i == count) return;
  float last[kChains];
  std::fill(last, last + kChains, filler);
  std::copy(x + i, x + count, last);
  ATTEST_UNROLL
  for (std::int64_t p = 0; p < kParts; ++p) visit(p, i + p * kWidth, load(last + p * kWidth));
}

// x[i] = exp(x[i] - shift(i)), some elements at a time.
template <class Shift>
HWY_INLINE void exp_each(float* x, std::int64_t count, const Shift& shift) {
  std::int64_t i = 0;
  for (; i + kWidth <= count; i += kWidth) {
    store(exponential(hn::Sub(load(x + i), shift(i, kWidth))), x + i);
  }
  if (i == count) return;
  float last[kWidth] = {};
  std::copy(x + i, x + count, last);
  store(exponential(hn::Sub(load(last), shift(i, count - i))), last);
  std::copy(last, last + (count - i), x + i);
}

// x[i] of bits that are read as elements of 16 bits of a type.
template <class Half>
HWY_INLINE void widen_each(const std::uint16_t* bits, std::int64_t count, float* x) {
  constexpr hn::Rebind<Half, Floats> kHalves;
  constexpr hn::Rebind<std::uint16_t, Floats> kBits;
  const auto some = [&](const std::uint16_t* from, float* to) HWY_ATTR {
    store(hn::PromoteTo(kFloats, hn::BitCast(kHalves, hn::LoadU(kBits, from))), to);
  };
  std::int64_t i = 0;
  for (; i + kWidth <= count; i += kWidth) some(bits + i, x + i);
  if (i == count) return;
  std::uint16_t last[kWidth] = {};
  float wide[kWidth];
  std::copy(bits + i, bits + count, last);
  some(last, wide);
  std::copy(wide, wide + (count - i), x + i);
}

struct Elementwise {
  static void exp_shifted(float* x, std::int64_t count, float shift) {
    exp_each(x, count, [&](std::int64_t, std::int64_t) HWY_ATTR { return set(shift); });
  }

  static void exp_differences(float* x, const float* shift, std::int64_t count) {
    exp_each(x, count, [&](std::int64_t first, std::int64_t number) HWY_ATTR {
      if (number == kWidth) return load(shift + first);
      float some[kWidth] = {};
      std::copy_n(shift + first, number, some);
      return load(some);
    });
  }

  static float row_maximum(const float* x, std::int64_t count, float start) {
    V part[kParts];
    ATTEST_UNROLL
    for (std::int64_t p = 0; p < kParts; ++p) part[p] = set(start);
    for_chains(x, count, start,
               [&](std::int64_t p, std::int64_t, V v) HWY_ATTR { part[p] = larger(v, part[p]); });
    float lane[kChains];
    for (std::int64_t p = 0; p < kParts; ++p) store(part[p], lane + p * kWidth);
    float maximum = start;
    for (std::int64_t c = 0; c < kChains; ++c) maximum = lane[c] > maximum ? lane[c] : maximum;
    return maximum;
  }

  static float row_sum(const float* x, std::int64_t count) {
    V part[kParts];
    ATTEST_UNROLL
    for (std::int64_t p = 0; p < kParts; ++p) part[p] = hn::Zero(kFloats);
    for_chains(x, count, 0,
               [&](std::int64_t p, std::int64_t, V v) HWY_ATTR { part[p] = hn::Add(part[p], v); });
    return fold(part);
  }

  static float dot(const float* x, const float* y, std::int64_t count) {
    V part[kParts];
    ATTEST_UNROLL
    for (std::int64_t p = 0; p < kParts; ++p) part[p] = hn::Zero(kFloats);
    const std::int64_t whole = count / kChains * kChains;
    for_chains(x, whole, 0, [&](std::int64_t p, std::int64_t i, V v) HWY_ATTR {
      part[p] = hn::MulAdd(v, load(y + i), part[p]);
    });
    if (whole < count) {
      float last[kChains] = {};
      std::copy(y + whole, y + count, last);
      for_chains(x + whole, count - whole, 0, [&](std::int64_t p, std::int64_t i, V v) HWY_ATTR {
        part[p] = hn::MulAdd(v, load(last + i), part[p]);
      });
    }
    return fold(part);
  }

  static void scale_row(float* x, std::int64_t count, float factor) {
    std::int64_t i = 0;
    for (; i + kWidth <= count; i += kWidth) store(hn::Mul(load(x + i), set(factor)), x + i);
    for (; i < count; ++i) x[i] *= factor;
  }

  static bool all_finite(const float* rows, std::int64_t stride, std::int64_t count,
                         std::int64_t columns) {
    constexpr std::int64_t kVectors = 4;  // their chains hide each other's latency
    V part[kVectors];                     // 0 times what is not finite is NaN
    ATTEST_UNROLL
    for (std::int64_t p = 0; p < kVectors; ++p) part[p] = hn::Zero(kFloats);
    for (std::int64_t r = 0; r < count; ++r) {
      const float* const row = rows + r * stride;
      std::int64_t c = 0;
      for (; c + kVectors * kWidth <= columns; c += kVectors * kWidth) {
        ATTEST_UNROLL
        for (std::int64_t p = 0; p < kVectors; ++p) {
          part[p] = hn::MulAdd(load(row + c + p * kWidth), hn::Zero(kFloats), part[p]);
        }
      }
      for (; c + kWidth <= columns; c += kWidth) {
        part[0] = hn::MulAdd(load(row + c), hn::Zero(kFloats), part[0]);
      }
      if (c == columns) continue;
      float last[kWidth] = {};
      std::copy(row + c, row + columns, last);
      part[0] = hn::MulAdd(load(last), hn::Zero(kFloats), part[0]);
    }
    const V all = hn::Add(hn::Add(part[0], part[1]), hn::Add(part[2], part[3]));
    return hn::AllTrue(kFloats, hn::Eq(all, hn::Zero(kFloats)));
  }

  static void widen_bf16(const std::uint16_t* bits, std::int64_t count, float* x) {
    widen_each<hwy::bfloat16_t>(bits, count, x);
  }

  static void widen_f16(const std::uint16_t* bits, std::int64_t count, float* x) {
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON
    widen_each<hwy::float16_t>(bits, count, x);
#else  // what Highway does without an instruction makes no infinities and NaN
    for (std::int64_t i = 0; i < count; ++i) x[i] = float_from_f16(bits[i]);
#endif
  }

  static void pair_rows(const float* rows, std::int64_t stride, std::int64_t count,
                        std::int64_t columns, float* pairs) {
    for (std::int64_t r = 0; r < count; r += 2) {
      const float* const first = rows + r * stride;
      const bool is_last = r + 1 == count;
      float* const out = pairs + r / 2 * stride;
      std::int64_t c = 0;
      for (; c + kWidth <= columns; c += kWidth) {
        const V second = is_last ? hn::Zero(kFloats) : load(first + stride + c);
        store(paired(load(first + c), second), out + c);
      }
      if (c == columns) continue;
      float ends[2][kWidth] = {};
      std::copy(first + c, first + columns, ends[0]);
      if (!is_last) std::copy(first + stride + c, first + stride + columns, ends[1]);
      store(paired(load(ends[0]), load(ends[1])), ends[0]);
      std::copy_n(ends[0], columns - c, out + c);
    }
  }
};

ElementwiseFunctions elementwise() {
  return {Elementwise::exp_shifted, Elementwise::exp_differences,
          Elementwise::row_maximum, Elementwise::row_sum,
          Elementwise::dot,         Elementwise::scale_row,
          Elementwise::all_finite,  Elementwise::widen_bf16,
          Elementwise::widen_f16,   Elementwise::pair_rows};
}

}  // namespace attest::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attest::cpu {
namespace {

HWY_EXPORT(elementwise);

const ElementwiseFunctions& functions() {
  static const ElementwiseFunctions all = ATTEST_ON_TARGET(elementwise)();
  return all;
}

}  // namespace

void exp_shifted(float* x, std::int64_t count, float shift) {
  functions().exp_shifted(x, count, shift);
}

void exp_differences(float* x, const float* shift, std::int64_t count) {
  functions().exp_differences(x, shift, count);
}

float row_maximum(const float* x, std::int64_t count, float start) {
  return functions().row_maximum(x, count, start);
}

float row_sum(const float* x, std::int64_t count) { return functions().row_sum(x, count); }

float dot(const float* x, const float* y, std::int64_t count) {
  return functions().dot(x, y, count);
}

void scale_row(float* x, std::int64_t count, float factor) {
  functions().scale_row(x, count, factor);
}

bool all_finite(const float* rows, std::int64_t stride, std::int64_t count, std::int64_t columns) {
  return functions().all_finite(rows, stride, count, columns);
}

void widen_bf16(const std::uint16_t* bits, std::int64_t count, float* x) {
  functions().widen_bf16(bits, count, x);
}

void widen_f16(const std::uint16_t* bits, std::int64_t count, float* x) {
  functions().widen_f16(bits, count, x);
}

void pair_rows(const float* rows, std::int64_t stride, std::int64_t count, std::int64_t columns,
               float* pairs) {
  functions().pair_rows(rows, stride, count, columns, pairs);
}

}  // namespace attest::cpu
#endif
