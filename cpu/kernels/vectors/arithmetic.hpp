#pragma once

#include <cstdint>

/// The float32 arithmetic of the kernels, compiled for the targets of target.hpp. Products are
/// fused multiply-adds where the target has them; within a target every result depends on the
/// operands alone, not on the shape in which they come.
namespace attest::cpu {

/// An operand whose element (i, k) lies at data[i * row_stride + k * column_stride]. One of the
/// strides is 1.
struct Strided {
  const float* data;
  std::int64_t row_stride, column_stride;
};

/// The operands of C(m, n) and A(m, k) B(k, n); B and C row-major with row strides ldb and ldc.
/// With `in_pairs`, every element of A and B holds two numbers in bf16 in the bits of a float, the
/// first in the lower half: k counts pairs, and a term is the sum of two products.
struct Product {
  float* C;
  std::int64_t ldc;
  Strided A;
  const float* B;
  std::int64_t ldb;
  std::int64_t m, n, k;
  bool in_pairs = false;
};

/// C += A B. Each element is one chain of fused multiply-adds over k in ascending order. Requires:
/// not in pairs.  [cpu/kernels/vectors/arithmetic_test "product"]
void multiply_add(const Product& product);
inline void multiply_add(float* C, std::int64_t ldc, const Strided& A, const float* B,
                         std::int64_t ldb, std::int64_t m, std::int64_t n, std::int64_t k) {
  multiply_add(Product{C, ldc, A, B, ldb, m, n, k});
}

/// The same after C(i, j) has been multiplied by column_factors[j]. Requires: A.row_stride == 1.
/// In pairs, the second product of a term is added first; AVX3_BF16 flushes subnormals.
/// [cpu/kernels/vectors/arithmetic_test "pairs"]
void scale_multiply_add(const Product& product, const float* column_factors);

/// C = factor (A B), each chain from 0 on; in pairs as scale_multiply_add. Requires:
/// A.column_stride == 1.
void multiply(const Product& product, float factor);

/// pairs(r, c) = rows(2 r, c) and rows(2 r + 1, c) in bf16, rounded to nearest even, 0 in the place
/// of a row that is missing. Both have rows `stride` apart, and may be the same.
/// [cpu/kernels/vectors/arithmetic_test "pairs"]
void pair_rows(const float* rows, std::int64_t stride, std::int64_t count, std::int64_t columns,
               float* pairs);

/// x[i] = exp(x[i] - shift). Within 2 ulp where the result is normal, 0 below, +inf above 2^127.5;
/// exp(0) = 1, exp(-inf) = 0, NaN stays. Requires shift > -inf.
/// [cpu/kernels/vectors/arithmetic_test "exponential"]
void exp_shifted(float* x, std::int64_t count, float shift);

/// x[i] = exp(x[i] - shift[i]), as exp_shifted.
/// [cpu/kernels/vectors/arithmetic_test "exponential"]
void exp_differences(float* x, const float* shift, std::int64_t count);

/// The largest of `start` and x[i]; NaNs are passed over.  [cpu/kernels/vectors/arithmetic_test
/// "reductions"]
float row_maximum(const float* x, std::int64_t count, float start);

/// Sum of x[i], and of x[i] y[i], fused: sixteen chains in ascending order, then their sum pair by
/// pair, so at most count / 16 + 5 additions to a term.
/// [cpu/kernels/vectors/arithmetic_test "reductions"]
float row_sum(const float* x, std::int64_t count);
float dot(const float* x, const float* y, std::int64_t count);

/// x[i] *= factor.
void scale_row(float* x, std::int64_t count, float factor);

/// Tells whether no element of some rows is NaN or infinite.
bool all_finite(const float* rows, std::int64_t stride, std::int64_t count, std::int64_t columns);

/// x[i] = the float32 of bits of bf16 or f16, exactly.  [cpu/kernels/vectors/arithmetic_test
/// "widened"]
void widen_bf16(const std::uint16_t* bits, std::int64_t count, float* x);
void widen_f16(const std::uint16_t* bits, std::int64_t count, float* x);

/// The functions of one target.
struct ProductFunctions {
  void (*add)(const Product&);
  void (*add_scaled)(const Product&, const float*);
  void (*set)(const Product&, float);
};
struct ElementwiseFunctions {
  void (*exp_shifted)(float*, std::int64_t, float);
  void (*exp_differences)(float*, const float*, std::int64_t);
  float (*row_maximum)(const float*, std::int64_t, float);
  float (*row_sum)(const float*, std::int64_t);
  float (*dot)(const float*, const float*, std::int64_t);
  void (*scale_row)(float*, std::int64_t, float);
  bool (*all_finite)(const float*, std::int64_t, std::int64_t, std::int64_t);
  void (*widen_bf16)(const std::uint16_t*, std::int64_t, float*);
  void (*widen_f16)(const std::uint16_t*, std::int64_t, float*);
  void (*pair_rows)(const float*, std::int64_t, std::int64_t, std::int64_t, float*);
};

}  // namespace attest::cpu
