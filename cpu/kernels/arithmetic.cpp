#include "cpu/kernels/arithmetic.hpp"

#include <algorithm>
#include <cstring>

#include "core/vector_clones.hpp"

#ifdef __FAST_MATH__
#error "fast-math changes what these kernels promise"
#endif

namespace attest::cpu {

namespace {

constexpr std::int64_t kRows = 4;     // two vectors of sums of each stay in registers
constexpr std::int64_t kDepth = 256;  // columns of A whose cache lines stay near
constexpr std::int64_t kLanes = 16;   // partial results of a reduction

// The sum of the lanes, pair by pair.
ATTEST_INLINE_CLONE float fold(float* lane) {
  for (std::int64_t c = 0; c < 8; ++c) lane[c] += lane[c + 8];
  for (std::int64_t c = 0; c < 4; ++c) lane[c] += lane[c + 4];
  return (lane[0] + lane[2]) + (lane[1] + lane[3]);
}

// A vector by name: loops over so few columns are unrolled before they are vectorised. No wider:
// g++ takes a vector that no register holds through memory, which made products 38 times as slow.
using Vector = float __attribute__((vector_size(32)));
constexpr std::int64_t kWidth = 8;

// C(rows, kVectors vectors) += A^T B for A packed (depth, kRows).
template <std::int64_t kVectors, std::int64_t rows>
ATTEST_INLINE_CLONE void add_block(float* C, std::int64_t ldc, const float* A, const float* B,
                                   std::int64_t ldb, std::int64_t depth) {
  Vector sum[rows][kVectors];
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t v = 0; v < kVectors; ++v) {
      std::memcpy(&sum[r][v], C + r * ldc + v * kWidth, sizeof(Vector));
    }
  }
  for (std::int64_t l = 0; l < depth; ++l) {
    Vector b[kVectors];
    for (std::int64_t v = 0; v < kVectors; ++v) {
      std::memcpy(&b[v], B + l * ldb + v * kWidth, sizeof(Vector));
    }
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t v = 0; v < kVectors; ++v) sum[r][v] += A[l * kRows + r] * b[v];
    }
  }
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t v = 0; v < kVectors; ++v) {
      std::memcpy(C + r * ldc + v * kWidth, &sum[r][v], sizeof(Vector));
    }
  }
}

// C(height, kVectors vectors) += A^T B, height at most kRows.
template <std::int64_t kVectors>
ATTEST_INLINE_CLONE void add_panel(float* C, std::int64_t ldc, std::int64_t height, const float* A,
                                   const float* B, std::int64_t ldb, std::int64_t depth) {
  if (height == kRows) return add_block<kVectors, kRows>(C, ldc, A, B, ldb, depth);
  for (std::int64_t r = 0; r < height; ++r) {
    add_block<kVectors, 1>(C + r * ldc, ldc, A + r, B, ldb, depth);
  }
}

// The last columns of a matrix, fewer than a vector's, and zeros for the others.
ATTEST_INLINE_CLONE void widen(float* wide, const float* narrow, std::int64_t stride,
                               std::int64_t rows, std::int64_t columns) {
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < kWidth; ++c) {
      wide[r * kWidth + c] = c < columns ? narrow[r * stride + c] : 0;
    }
  }
}

ATTEST_INLINE_CLONE float larger(float a, float b) { return a > b ? a : b; }

// t = exp(t) = 2^n exp(r), n = round(t / ln 2), |r| <= ln 2 / 2: Taylor's polynomial of degree 7.
ATTEST_INLINE_CLONE void exponentiate(Vector& t) {
  using Integers = std::int32_t __attribute__((vector_size(sizeof(Vector))));
  constexpr float kLog2e = 0x1.715476p+0f;
  constexpr float kLn2High = 0x1.62e4p-1f, kLn2Low = 0x1.7f7d1cp-20f;  // n * high is exact
  constexpr float kToInteger = 0x1.8p23f;
  const Vector smallest = Vector{} - 0x1.5d589ep+6f;  // ln 2^-126: below it the result is flushed
  const Vector largest = Vector{} + 89.0f;            // from n = 128 on the result is infinite
  const Vector raised = t < smallest ? smallest : t;
  const Vector clamped = raised > largest ? largest : raised;
  const Vector shifted = clamped * kLog2e + kToInteger;
  const Vector n = shifted - kToInteger;
  const Vector r = (clamped - n * kLn2High) - n * kLn2Low;
  Vector p = Vector{} + 1.0f / 5040;
  p = p * r + 1.0f / 720;
  p = p * r + 1.0f / 120;
  p = p * r + 1.0f / 24;
  p = p * r + 1.0f / 6;
  p = p * r + 0.5f;
  p = (p * r) * r + r;
  p = p + 1.0f;
  Integers exponent;
  std::memcpy(&exponent, &shifted, sizeof exponent);
  exponent = (exponent << 23) + 0x3f800000;
  Vector power;
  std::memcpy(&power, &exponent, sizeof power);
  t = t < smallest ? Vector{} : p * power;
}

// x[i] = exp(x[i] - shift[i * stride]), stride 0 or 1.
template <std::int64_t stride>
ATTEST_INLINE_CLONE void exp_each(float* x, const float* shift, std::int64_t count) {
  const auto some = [&](std::int64_t first, std::int64_t number) {
    Vector t{}, less{};
    std::memcpy(&t, x + first, static_cast<std::size_t>(number) * sizeof(float));
    if constexpr (stride == 0) {
      less += *shift;
    } else {
      std::memcpy(&less, shift + first, static_cast<std::size_t>(number) * sizeof(float));
    }
    t -= less;
    exponentiate(t);
    std::memcpy(x + first, &t, static_cast<std::size_t>(number) * sizeof(float));
  };
  std::int64_t i = 0;
  for (; i + kWidth <= count; i += kWidth) some(i, kWidth);
  if (i < count) some(i, count - i);
}

}  // namespace

ATTEST_VECTOR_CLONES
void multiply_add(float* C, std::int64_t ldc, const Strided& A, const float* B, std::int64_t ldb,
                  std::int64_t m, std::int64_t n, std::int64_t k) {
  float packed[kDepth * kRows], wide_b[kDepth * kWidth], wide_c[kRows * kWidth];
  const std::int64_t whole = n / kWidth * kWidth, narrow = n - whole;
  for (std::int64_t l = 0; l < k; l += kDepth) {
    const std::int64_t depth = std::min(kDepth, k - l);
    const float* b = B + l * ldb;
    if (narrow != 0) widen(wide_b, b + whole, ldb, depth, narrow);
    for (std::int64_t i = 0; i < m; i += kRows) {
      const std::int64_t height = std::min(kRows, m - i);
      const float* a = A.data + i * A.row_stride + l * A.column_stride;
      for (std::int64_t d = 0; d < depth; ++d) {
        for (std::int64_t r = 0; r < height; ++r) {
          packed[d * kRows + r] = a[r * A.row_stride + d * A.column_stride];
        }
      }
      float* c = C + i * ldc;
      std::int64_t j = 0;
      for (; j + 2 * kWidth <= n; j += 2 * kWidth) {
        add_panel<2>(c + j, ldc, height, packed, b + j, ldb, depth);
      }
      if (j < whole) add_panel<1>(c + j, ldc, height, packed, b + j, ldb, depth);
      if (narrow == 0) continue;
      widen(wide_c, c + whole, ldc, height, narrow);
      add_panel<1>(wide_c, kWidth, height, packed, wide_b, kWidth, depth);
      for (std::int64_t r = 0; r < height; ++r) {
        std::copy_n(wide_c + r * kWidth, narrow, c + r * ldc + whole);
      }
    }
  }
}

ATTEST_VECTOR_CLONES
float row_maximum(const float* x, std::int64_t count, float start) {
  float lane[kLanes];
  for (std::int64_t c = 0; c < kLanes; ++c) lane[c] = start;
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::int64_t c = 0; c < kLanes; ++c) lane[c] = larger(x[i + c], lane[c]);
  }
  float maximum = start;
  for (std::int64_t c = 0; c < kLanes; ++c) maximum = larger(lane[c], maximum);
  for (; i < count; ++i) maximum = larger(x[i], maximum);
  return maximum;
}

ATTEST_VECTOR_CLONES
float row_sum(const float* x, std::int64_t count) {
  float lane[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::int64_t c = 0; c < kLanes; ++c) lane[c] += x[i + c];
  }
  for (std::int64_t c = 0; i + c < count; ++c) lane[c] += x[i + c];
  return fold(lane);
}

ATTEST_VECTOR_CLONES
float dot(const float* x, const float* y, std::int64_t count) {
  float lane[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::int64_t c = 0; c < kLanes; ++c) lane[c] += x[i + c] * y[i + c];
  }
  for (std::int64_t c = 0; i + c < count; ++c) lane[c] += x[i + c] * y[i + c];
  return fold(lane);
}

ATTEST_VECTOR_CLONES
void exp_shifted(float* x, std::int64_t count, float shift) { exp_each<0>(x, &shift, count); }

ATTEST_VECTOR_CLONES
void exp_differences(float* x, const float* shift, std::int64_t count) {
  exp_each<1>(x, shift, count);
}

ATTEST_VECTOR_CLONES
void scale_row(float* x, std::int64_t count, float factor) {
  for (std::int64_t i = 0; i < count; ++i) x[i] *= factor;
}

}  // namespace attest::cpu
