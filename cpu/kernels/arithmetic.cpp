#include "cpu/kernels/arithmetic.hpp"

#include <bit>
#include <cstring>

#include "core/vector_clones.hpp"

#ifdef __FAST_MATH__
#error "fast-math changes what these kernels promise"
#endif

namespace attest::cpu {

namespace {

constexpr std::int64_t kRows = 4, kWide = 32;  // accumulators stay in registers
constexpr std::int64_t kDepth = 256;           // columns of A whose cache lines stay near
constexpr std::int64_t kLanes = 16;            // partial results of a reduction

// The sum of the lanes, pair by pair.
ATTEST_INLINE_CLONE float fold(float* lane) {
  for (std::int64_t c = 0; c < 8; ++c) lane[c] += lane[c + 8];
  for (std::int64_t c = 0; c < 4; ++c) lane[c] += lane[c + 4];
  return (lane[0] + lane[2]) + (lane[1] + lane[3]);
}

// Vectors by name: loops over so few columns are unrolled before they are vectorised.
using Eight = float __attribute__((vector_size(32)));
using Sixteen = float __attribute__((vector_size(64)));

// C(kRows, n) += A(kRows, k) B(k, n) with n the columns of kVectors vectors.
template <class Lanes, std::int64_t kVectors>
ATTEST_INLINE_CLONE void add_block(float* C, std::int64_t ldc, const float* a, std::int64_t as,
                                   std::int64_t ak, const float* B, std::int64_t ldb,
                                   std::int64_t k) {
  constexpr auto kWidth = static_cast<std::int64_t>(sizeof(Lanes) / sizeof(float));
  Lanes sum[kRows][kVectors];
  for (std::int64_t r = 0; r < kRows; ++r) {
    for (std::int64_t v = 0; v < kVectors; ++v) {
      std::memcpy(&sum[r][v], C + r * ldc + v * kWidth, sizeof(Lanes));
    }
  }
  for (std::int64_t l = 0; l < k; ++l) {
    Lanes b[kVectors];
    std::memcpy(b, B + l * ldb, sizeof b);
    for (std::int64_t r = 0; r < kRows; ++r) {
      const float x = a[r * as + l * ak];
      for (std::int64_t v = 0; v < kVectors; ++v) sum[r][v] += x * b[v];
    }
  }
  for (std::int64_t r = 0; r < kRows; ++r) {
    for (std::int64_t v = 0; v < kVectors; ++v) {
      std::memcpy(C + r * ldc + v * kWidth, &sum[r][v], sizeof(Lanes));
    }
  }
}

// One column of kRows rows of C += kRows rows of A times a column of B.
ATTEST_INLINE_CLONE void add_column(float* C, std::int64_t ldc, const float* a, std::int64_t as,
                                    std::int64_t ak, const float* b, std::int64_t ldb,
                                    std::int64_t k) {
  float sum[kRows];
  for (std::int64_t r = 0; r < kRows; ++r) sum[r] = C[r * ldc];
  for (std::int64_t l = 0; l < k; ++l) {
    const float x = b[l * ldb];
    for (std::int64_t r = 0; r < kRows; ++r) sum[r] += a[r * as + l * ak] * x;
  }
  for (std::int64_t r = 0; r < kRows; ++r) C[r * ldc] = sum[r];
}

// One row of C += one row of A times B.
ATTEST_INLINE_CLONE void add_row(float* C, const float* a, std::int64_t ak, const float* B,
                                 std::int64_t ldb, std::int64_t n, std::int64_t k) {
  for (std::int64_t l = 0; l < k; ++l) {
    const float x = a[l * ak];
    for (std::int64_t c = 0; c < n; ++c) C[c] += x * B[l * ldb + c];
  }
}

ATTEST_INLINE_CLONE float larger(float a, float b) { return a > b ? a : b; }

// exp(t) = 2^n exp(r), n = round(t / ln 2), |r| <= ln 2 / 2: Taylor's polynomial of degree 7.
ATTEST_INLINE_CLONE float exponential(float t) {
  constexpr float kLog2e = 0x1.715476p+0f;
  constexpr float kLn2High = 0x1.62e4p-1f, kLn2Low = 0x1.7f7d1cp-20f;  // n * high is exact
  constexpr float kToInteger = 0x1.8p23f;
  constexpr float kSmallest = -0x1.5d589ep+6f;  // ln 2^-126: below it the result is flushed
  constexpr float kLargest = 89;                // from n = 128 on the result is infinite
  const float raised = t < kSmallest ? kSmallest : t;
  const float clamped = raised > kLargest ? kLargest : raised;
  const float shifted = clamped * kLog2e + kToInteger;
  const float n = shifted - kToInteger;
  const float r = (clamped - n * kLn2High) - n * kLn2Low;
  float p = 1.0f / 5040;
  p = p * r + 1.0f / 720;
  p = p * r + 1.0f / 120;
  p = p * r + 1.0f / 24;
  p = p * r + 1.0f / 6;
  p = p * r + 0.5f;
  p = (p * r) * r + r;
  p = p + 1.0f;
  const auto exponent = std::bit_cast<std::int32_t>(shifted) << 23;
  const float power = std::bit_cast<float>(exponent + 0x3f800000);
  return t < kSmallest ? 0.0f : p * power;
}

}  // namespace

ATTEST_VECTOR_CLONES
void multiply_add(float* C, std::int64_t ldc, const Strided& A, const float* B, std::int64_t ldb,
                  std::int64_t m, std::int64_t n, std::int64_t k) {
  const std::int64_t as = A.row_stride, ak = A.column_stride;
  for (std::int64_t l = 0; l < k; l += kDepth) {
    const std::int64_t depth = k - l < kDepth ? k - l : kDepth;
    const float *a = A.data + l * ak, *b = B + l * ldb;
    std::int64_t i = 0;
    for (; i + kRows <= m; i += kRows) {
      std::int64_t j = 0;
      for (; j + kWide <= n; j += kWide) {
        add_block<Sixteen, 2>(C + i * ldc + j, ldc, a + i * as, as, ak, b + j, ldb, depth);
      }
      if (j + kWide / 2 <= n) {
        add_block<Sixteen, 1>(C + i * ldc + j, ldc, a + i * as, as, ak, b + j, ldb, depth);
        j += kWide / 2;
      }
      if (j + kWide / 4 <= n) {
        add_block<Eight, 1>(C + i * ldc + j, ldc, a + i * as, as, ak, b + j, ldb, depth);
        j += kWide / 4;
      }
      for (; j < n; ++j) add_column(C + i * ldc + j, ldc, a + i * as, as, ak, b + j, ldb, depth);
    }
    for (; i < m; ++i) add_row(C + i * ldc, a + i * as, ak, b, ldb, n, depth);
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
void exp_shifted(float* x, std::int64_t count, float shift) {
  for (std::int64_t i = 0; i < count; ++i) x[i] = exponential(x[i] - shift);
}

ATTEST_VECTOR_CLONES
void exp_differences(float* x, const float* shift, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) x[i] = exponential(x[i] - shift[i]);
}

ATTEST_VECTOR_CLONES
void scale_row(float* x, std::int64_t count, float factor) {
  for (std::int64_t i = 0; i < count; ++i) x[i] *= factor;
}

}  // namespace attest::cpu
