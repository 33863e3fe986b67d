// Products of matrices, in every target: one microkernel for all of them, and one for few columns.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/kernels/vectors/products.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h comes first.
#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>

#include "cpu/kernels/vectors/arithmetic.hpp"
#include "cpu/kernels/vectors/few_columns-inl.hpp"
#include "cpu/kernels/vectors/lanes-inl.hpp"
#include "cpu/kernels/vectors/target.hpp"

HWY_BEFORE_NAMESPACE();
namespace attest::cpu::HWY_NAMESPACE {

#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON
constexpr std::int64_t kRegisters = 32;
#else
constexpr std::int64_t kRegisters = 16;
#endif

// The most vectors of a row of C that are summed at once.
constexpr std::int64_t kMostVectors = kRegisters == 32 ? 4 : 3;

// Rows of C beside them: 24 sums of 32 registers or 12 of 16, and vectors of B.
constexpr std::int64_t rows_beside(std::int64_t vectors) {
  return kRegisters == 32 ? (vectors == 4 ? 6 : 8) : 4;
}

// A product without the last columns that fill no vector.
struct Task {
  float* C;
  std::int64_t ldc;
  const float* A;
  std::int64_t a_stride;  // from row to row, or from column to column
  const float* B;
  std::int64_t ldb;
  std::int64_t depth;
  const float* column_factors;  // of Start::scaled
  float factor;                 // of Start::zero
};

// How a sum begins: at C, at C times a factor for each column, or at 0, where it ends as `factor`
// times what was summed.
enum class Start : std::uint8_t { sum, scaled, zero };

// How a term is added to a sum: as the product of two numbers,
struct OfNumbers {
  static HWY_INLINE V add(V a, V b, V sum) { return hn::MulAdd(a, b, sum); }
};

// or as the two products of two pairs: widened,
struct OfPairs {
  static HWY_INLINE V add(V a, V b, V sum) {
    const V with_second = hn::MulAdd(second_of_pair(a), second_of_pair(b), sum);
    return hn::MulAdd(first_of_pair(a), first_of_pair(b), with_second);
  }
};

#if HWY_TARGET == HWY_AVX3
// or by the instruction of AVX-512 BF16, for which Highway has no target.
struct OfPairsAtOnce {
  static HWY_INLINE V add(V a, V b, V sum) {
    asm("vdpbf16ps %2, %1, %0" : "+v"(sum.raw) : "v"(a.raw), "v"(b.raw));
    return sum;
  }
};
#endif

// C (rows x vectors), A with rows side by side in memory where kAcross, else columns.
template <class Term, Start kStart, bool kAcross, std::int64_t kRows, std::int64_t kVectors>
HWY_INLINE void add_tile(const Task& t, std::int64_t i, std::int64_t j) {
  float* const C = t.C + i * t.ldc + j;
  const float* A = t.depth == 0 ? t.A : t.A + (kAcross ? i : i * t.a_stride);
  const float* B = t.depth == 0 ? t.B : t.B + j;  // nothing may be there
  V sum[kRows][kVectors];
  ATTEST_UNROLL
  for (std::int64_t r = 0; r < kRows; ++r) {
    ATTEST_UNROLL
    for (std::int64_t v = 0; v < kVectors; ++v) {
      if constexpr (kStart == Start::zero) {
        sum[r][v] = hn::Zero(kFloats);
      } else {
        sum[r][v] = load(C + r * t.ldc + v * kWidth);
      }
      if constexpr (kStart == Start::scaled) {
        sum[r][v] = hn::Mul(sum[r][v], load(t.column_factors + j + v * kWidth));
      }
    }
  }
  for (std::int64_t l = 0; l < t.depth; ++l) {
    V b[kVectors];
    ATTEST_UNROLL
    for (std::int64_t v = 0; v < kVectors; ++v) b[v] = load(B + v * kWidth);
    ATTEST_UNROLL
    for (std::int64_t r = 0; r < kRows; ++r) {
      const V a = set(A[kAcross ? r : r * t.a_stride]);
      ATTEST_UNROLL
      for (std::int64_t v = 0; v < kVectors; ++v) sum[r][v] = Term::add(a, b[v], sum[r][v]);
    }
    A += kAcross ? t.a_stride : 1;
    B += t.ldb;
  }
  ATTEST_UNROLL
  for (std::int64_t r = 0; r < kRows; ++r) {
    ATTEST_UNROLL
    for (std::int64_t v = 0; v < kVectors; ++v) {
      if constexpr (kStart == Start::zero) sum[r][v] = hn::Mul(sum[r][v], set(t.factor));
      store(sum[r][v], C + r * t.ldc + v * kWidth);
    }
  }
}

// Rows i .. m - 1 of some vectors of columns.
template <class Term, Start kStart, bool kAcross, std::int64_t kRows, std::int64_t kVectors>
HWY_INLINE void add_rows(const Task& t, std::int64_t i, std::int64_t m, std::int64_t j) {
  for (; i + kRows <= m; i += kRows) add_tile<Term, kStart, kAcross, kRows, kVectors>(t, i, j);
  if constexpr (kRows > 1) {
    if (i < m) add_rows<Term, kStart, kAcross, kRows / 2, kVectors>(t, i, m, j);
  }
}

// The vectors of columns that are taken next.
constexpr std::int64_t vectors_of(std::int64_t left) {
  if (kMostVectors == 4) {
    if (left % 4 == 0) return 4;
    if (left % 3 == 0) return 3;
    if (left == 5) return 3;
    return left > 4 ? 4 : left;
  }
  if (left == 4) return 2;
  return left > 3 ? 3 : left;
}

template <class Term, Start kStart, bool kAcross>
HWY_INLINE void add_columns(const Task& t, std::int64_t m, std::int64_t n) {
  for (std::int64_t j = 0; j < n;) {
    const std::int64_t vectors = vectors_of((n - j) / kWidth);
    if constexpr (kMostVectors == 4) {
      if (vectors == 4) add_rows<Term, kStart, kAcross, rows_beside(4), 4>(t, 0, m, j);
    }
    if (vectors == 3) add_rows<Term, kStart, kAcross, rows_beside(3), 3>(t, 0, m, j);
    if (vectors == 2) add_rows<Term, kStart, kAcross, rows_beside(2), 2>(t, 0, m, j);
    if (vectors == 1) add_rows<Term, kStart, kAcross, rows_beside(1), 1>(t, 0, m, j);
    j += vectors * kWidth;
  }
}

constexpr std::int64_t kTailDepth = 256, kTailRows = 32;

// The last columns, fewer than a vector's: B and C pass through wider copies.
template <class Term, Start kStart, bool kAcross>
HWY_INLINE void add_tail(const Task& t, std::int64_t m, std::int64_t j, std::int64_t columns) {
  float b[kTailDepth * kWidth] = {}, c[kTailRows * kWidth] = {};
  for (std::int64_t i = 0; i < m; i += kTailRows) {
    const std::int64_t rows = std::min(kTailRows, m - i);
    for (std::int64_t r = 0; r < rows; ++r) {
      float* const row = c + r * kWidth;
      for (std::int64_t x = 0; x < columns; ++x) {
        row[x] = kStart == Start::zero ? 0.0f : t.C[(i + r) * t.ldc + j + x];
        if (kStart == Start::scaled) row[x] *= t.column_factors[j + x];
      }
    }
    for (std::int64_t l = 0; l < t.depth; l += kTailDepth) {
      const std::int64_t depth = std::min(kTailDepth, t.depth - l);
      for (std::int64_t k = 0; k < depth; ++k) {
        const float* const row = t.B + (l + k) * t.ldb + j;
        for (std::int64_t x = 0; x < columns; ++x) b[k * kWidth + x] = row[x];
      }
      const float* const A = t.A + (kAcross ? i + l * t.a_stride : i * t.a_stride + l);
      const Task wide{c, kWidth, A, t.a_stride, b, kWidth, depth, nullptr, 1};
      add_rows<Term, Start::sum, kAcross, rows_beside(1), 1>(wide, 0, rows, 0);
    }
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t x = 0; x < columns; ++x) {
        const float sum = c[r * kWidth + x];
        t.C[(i + r) * t.ldc + j + x] = kStart == Start::zero ? sum * t.factor : sum;
      }
    }
  }
}

template <class Term, Start kStart, bool kAcross>
HWY_NOINLINE void multiply_as(const Task& t, std::int64_t m, std::int64_t n) {
  const std::int64_t whole = n / kWidth * kWidth;
  add_columns<Term, kStart, kAcross>(t, m, whole);
  if (whole < n) add_tail<Term, kStart, kAcross>(t, m, whole, n - whole);
}

template <class Pairs>
struct Products {
  static void add(const Product& p) {
    if (p.A.column_stride == 1) {
      const Task task = task_of(p, p.A.row_stride, nullptr, 1);
      multiply_as<OfNumbers, Start::sum, false>(task, p.m, p.n);
    } else {
      const Task task = task_of(p, p.A.column_stride, nullptr, 1);
      multiply_as<OfNumbers, Start::sum, true>(task, p.m, p.n);
    }
  }
  static void add_scaled(const Product& p, const float* column_factors) {
    const Task task = task_of(p, p.A.column_stride, column_factors, 1);
    if (p.in_pairs) return multiply_as<Pairs, Start::scaled, true>(task, p.m, p.n);
    multiply_as<OfNumbers, Start::scaled, true>(task, p.m, p.n);
  }
  static void set(const Product& p, float factor) {
    const Task task = task_of(p, p.A.row_stride, nullptr, factor);
    if (p.in_pairs) return multiply_as<Pairs, Start::zero, false>(task, p.m, p.n);
    if (p.n <= kFewLanes) return multiply_few(p, factor);
    multiply_as<OfNumbers, Start::zero, false>(task, p.m, p.n);
  }

 private:
  static Task task_of(const Product& p, std::int64_t a_stride, const float* column_factors,
                      float factor) {
    return {p.C, p.ldc, p.A.data, a_stride, p.B, p.ldb, p.k, column_factors, factor};
  }
};

template <class Pairs>
ProductFunctions products_with() {
  return {Products<Pairs>::add, Products<Pairs>::add_scaled, Products<Pairs>::set};
}

ProductFunctions products() {
#if HWY_TARGET == HWY_AVX3
  if (multiplies_pairs_at_once()) return products_with<OfPairsAtOnce>();
#endif
  return products_with<OfPairs>();
}

}  // namespace attest::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attest::cpu {
namespace {

HWY_EXPORT(products);

const ProductFunctions& functions() {
  static const ProductFunctions all = ATTEST_ON_TARGET(products)();
  return all;
}

}  // namespace

void multiply_add(const Product& product) { functions().add(product); }

void scale_multiply_add(const Product& product, const float* column_factors) {
  functions().add_scaled(product, column_factors);
}

void multiply(const Product& product, float factor) { functions().set(product, factor); }

}  // namespace attest::cpu
#endif
