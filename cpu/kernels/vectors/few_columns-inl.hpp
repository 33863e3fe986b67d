// Products with few columns: included once for each target, as lanes-inl.hpp.
#if defined(ATTEST_CPU_FEW_COLUMNS) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTEST_CPU_FEW_COLUMNS
#undef ATTEST_CPU_FEW_COLUMNS
#else
#define ATTEST_CPU_FEW_COLUMNS
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>

#include "cpu/kernels/vectors/arithmetic.hpp"
#include "cpu/kernels/vectors/lanes-inl.hpp"
#include "cpu/kernels/vectors/panels.hpp"

HWY_BEFORE_NAMESPACE();
namespace attest::cpu::HWY_NAMESPACE {

// Vectors of rows that are worked on side by side: their chains hide each other's latency.
constexpr std::int64_t kRowVectors = kWidth == 1 ? 8 : 32 / kWidth;

// x[r] lane c becomes x[c] lane r.
HWY_INLINE void transpose_square([[maybe_unused]] V (&x)[kWidth]) {
#if HWY_TARGET != HWY_SCALAR
  constexpr hn::Repartition<std::uint64_t, Floats> kPairs;
  ATTEST_UNROLL
  for (std::int64_t r = 0; r < kWidth; r += 4) {  // squares of four, in blocks of 128 bits
    const auto ab_low = hn::BitCast(kPairs, hn::InterleaveLower(kFloats, x[r], x[r + 1]));
    const auto cd_low = hn::BitCast(kPairs, hn::InterleaveLower(kFloats, x[r + 2], x[r + 3]));
    const auto ab_high = hn::BitCast(kPairs, hn::InterleaveUpper(kFloats, x[r], x[r + 1]));
    const auto cd_high = hn::BitCast(kPairs, hn::InterleaveUpper(kFloats, x[r + 2], x[r + 3]));
    x[r] = hn::BitCast(kFloats, hn::InterleaveLower(kPairs, ab_low, cd_low));
    x[r + 1] = hn::BitCast(kFloats, hn::InterleaveUpper(kPairs, ab_low, cd_low));
    x[r + 2] = hn::BitCast(kFloats, hn::InterleaveLower(kPairs, ab_high, cd_high));
    x[r + 3] = hn::BitCast(kFloats, hn::InterleaveUpper(kPairs, ab_high, cd_high));
  }
  if constexpr (kWidth >= 8) {  // then the blocks
    constexpr std::int64_t kHalf = kWidth / 2;
    ATTEST_UNROLL
    for (std::int64_t r = 0; r < kHalf; ++r) {
      const V low = x[r], high = x[kHalf + r];
      x[r] = hn::ConcatLowerLower(kFloats, high, low);
      x[kHalf + r] = hn::ConcatUpperUpper(kFloats, high, low);
    }
  }
  if constexpr (kWidth == 16) {
    ATTEST_UNROLL
    for (std::int64_t half = 0; half < 16; half += 8) {
      ATTEST_UNROLL
      for (std::int64_t r = half; r < half + 4; ++r) {
        const V low = x[r], high = x[r + 4];
        x[r] = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(high), low);
        x[r + 4] = hn::OddEvenBlocks(high, hn::SwapAdjacentBlocks(low));
      }
    }
  }
#endif
}

// A, B and the rows of A of one square: all kWidth, or `rows` of them.
struct Square {
  const float* A;
  std::int64_t stride, rows, columns;
  const float* B;
  std::int64_t ldb;
};

// sums[j kWidth ..] += the square's rows times column j of B, lanes of rows. Not kWhole: rows or
// columns are missing.
template <bool kWhole>
HWY_INLINE void add_square(const Square& s, std::int64_t n, float* sums) {
  V x[kWidth];
  ATTEST_UNROLL
  for (std::int64_t r = 0; r < kWidth; ++r) {
    if constexpr (kWhole) {
      x[r] = load(s.A + r * s.stride);
    } else {
      float some[kWidth] = {};
      if (r < s.rows) std::copy_n(s.A + r * s.stride, s.columns, some);
      x[r] = load(some);
    }
  }
  transpose_square(x);
  for (std::int64_t j = 0; j < n; ++j) {
    V sum = load(sums + j * kWidth);
    ATTEST_UNROLL
    for (std::int64_t t = 0; t < kWidth; ++t) {
      if (kWhole || t < s.columns) sum = hn::MulAdd(set(s.B[t * s.ldb + j]), x[t], sum);
    }
    store(sum, sums + j * kWidth);
  }
}

// C = factor (A B) for p.n <= kFewLanes: squares of A are turned in registers, and every element
// remains one chain over k.
HWY_NOINLINE void multiply_few(const Product& p, float factor) {
  const std::int64_t stride = p.A.row_stride;
  for (std::int64_t i = 0; i < p.m; i += kRowVectors * kWidth) {
    float sums[kRowVectors][kFewLanes * kWidth] = {};
    const std::int64_t rows = std::min(kRowVectors * kWidth, p.m - i);
    for (std::int64_t l = 0; l < p.k; l += kWidth) {
      for (std::int64_t r = 0; r < rows; r += kWidth) {
        const Square s{p.A.data + (i + r) * stride + l, stride,          std::min(kWidth, rows - r),
                       std::min(kWidth, p.k - l),       p.B + l * p.ldb, p.ldb};
        if (s.rows == kWidth && s.columns == kWidth) {
          add_square<true>(s, p.n, sums[r / kWidth]);
        } else {
          add_square<false>(s, p.n, sums[r / kWidth]);
        }
      }
    }
    for (std::int64_t r = 0; r < rows; ++r) {
      const float* const of_row = sums[r / kWidth] + r % kWidth;
      for (std::int64_t j = 0; j < p.n; ++j) p.C[(i + r) * p.ldc + j] = of_row[j * kWidth] * factor;
    }
  }
}

}  // namespace attest::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // ATTEST_CPU_FEW_COLUMNS
