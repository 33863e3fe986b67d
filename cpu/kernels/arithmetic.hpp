#pragma once

#include <cstdint>

/// The float32 arithmetic of the kernels. Compiled for several instruction sets and chosen at load
/// time; all of them give the same bits, because no operation is fused or reassociated.
namespace attest::cpu {

/// An operand whose element (i, k) lies at data[i * row_stride + k * column_stride].
struct Strided {
  const float* data;
  std::int64_t row_stride, column_stride;
};

/// C(m, n) += A(m, k) B(k, n); B and C row-major with row strides ldb and ldc. Each element is one
/// chain of additions over k in ascending order.  [cpu/kernels/arithmetic_test "product"]
void multiply_add(float* C, std::int64_t ldc, const Strided& A, const float* B, std::int64_t ldb,
                  std::int64_t m, std::int64_t n, std::int64_t k);

/// x[i] = exp(x[i] - shift). Within 2 ulp where the result is normal, 0 below, +inf above 2^127.5;
/// exp(0) = 1, exp(-inf) = 0, NaN stays. Requires shift > -inf.
/// [cpu/kernels/arithmetic_test "exponential"]
void exp_shifted(float* x, std::int64_t count, float shift);

/// x[i] = exp(x[i] - shift[i]), as exp_shifted.  [cpu/kernels/arithmetic_test "exponential"]
void exp_differences(float* x, const float* shift, std::int64_t count);

/// The largest of `start` and x[i]; NaNs are passed over.  [cpu/kernels/arithmetic_test
/// "reductions"]
float row_maximum(const float* x, std::int64_t count, float start);

/// Sum of x[i], and of x[i] y[i]: sixteen chains in ascending order, then their sum pair by pair,
/// so at most count / 16 + 5 additions to a term.  [cpu/kernels/arithmetic_test "reductions"]
float row_sum(const float* x, std::int64_t count);
float dot(const float* x, const float* y, std::int64_t count);

/// x[i] *= factor.
void scale_row(float* x, std::int64_t count, float factor);

}  // namespace attest::cpu
