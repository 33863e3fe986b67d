#include "cpu/kernels/arithmetic.hpp"

#include <bit>

#include "core/vector_clones.hpp"

#ifdef __FAST_MATH__
#error "fast-math changes what these kernels promise"
#endif

namespace attest::cpu {

ATTEST_VECTOR_CLONES
void multiply_add(float* C, std::int64_t ldc, const Strided& A, const float* B, std::int64_t ldb,
                  std::int64_t m, std::int64_t n, std::int64_t k) {
  constexpr std::int64_t kRows = 4, kColumns = 32;  // accumulators stay in registers
  const float* a = A.data;
  const std::int64_t as = A.row_stride, ak = A.column_stride;
  std::int64_t i = 0;
  for (; i + kRows <= m; i += kRows) {
    std::int64_t j = 0;
    for (; j + kColumns <= n; j += kColumns) {
      float sum[kRows][kColumns];
      for (std::int64_t r = 0; r < kRows; ++r) {
        for (std::int64_t c = 0; c < kColumns; ++c) sum[r][c] = C[(i + r) * ldc + j + c];
      }
      for (std::int64_t l = 0; l < k; ++l) {
        const float* b = B + l * ldb + j;
        for (std::int64_t r = 0; r < kRows; ++r) {
          const float x = a[(i + r) * as + l * ak];
          for (std::int64_t c = 0; c < kColumns; ++c) sum[r][c] += x * b[c];
        }
      }
      for (std::int64_t r = 0; r < kRows; ++r) {
        for (std::int64_t c = 0; c < kColumns; ++c) C[(i + r) * ldc + j + c] = sum[r][c];
      }
    }
    for (std::int64_t r = 0; r < kRows && j < n; ++r) {
      float* out = C + (i + r) * ldc;
      for (std::int64_t l = 0; l < k; ++l) {
        const float x = a[(i + r) * as + l * ak];
        for (std::int64_t c = j; c < n; ++c) out[c] += x * B[l * ldb + c];
      }
    }
  }
  for (; i < m; ++i) {
    float* out = C + i * ldc;
    for (std::int64_t l = 0; l < k; ++l) {
      const float x = a[i * as + l * ak];
      for (std::int64_t c = 0; c < n; ++c) out[c] += x * B[l * ldb + c];
    }
  }
}

ATTEST_VECTOR_CLONES
void exp_shifted(float* x, std::int64_t count, float shift) {
  // exp(t) = 2^n exp(r), n = round(t / ln 2), |r| <= ln 2 / 2: Taylor's polynomial of degree 7.
  constexpr float kLog2e = 0x1.715476p+0f;
  constexpr float kLn2High = 0x1.62e4p-1f, kLn2Low = 0x1.7f7d1cp-20f;  // n * high is exact
  constexpr float kToInteger = 0x1.8p23f;
  constexpr float kSmallest = -0x1.5d589ep+6f;  // ln 2^-126: below it the result is flushed
  for (std::int64_t i = 0; i < count; ++i) {
    const float t = x[i] - shift;
    const float clamped = t < kSmallest ? kSmallest : t;
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
    x[i] = t < kSmallest ? 0.0f : p * power;
  }
}

ATTEST_VECTOR_CLONES
void scale_row(float* x, std::int64_t count, float factor) {
  for (std::int64_t i = 0; i < count; ++i) x[i] *= factor;
}

}  // namespace attest::cpu
