#include "reference/vector_product.hpp"

#include <algorithm>
#include <cstring>

#include "core/vector_clones.hpp"
#include "reference/threads.hpp"

namespace attest::reference {
namespace {

// Four doubles that are added and multiplied as one; loops over an array are not reliably turned
// into vectors here. No wider: g++ takes a vector that no register holds through memory, ten times
// as slow. Copied from and to memory, which need not be aligned. They share nothing with the
// kernels' products (cpu/kernels/vectors/products.cpp): a mistake must not be in a kernel and in
// its bound.
using Lanes = double __attribute__((vector_size(32)));
constexpr std::int64_t kLanes = 4;

constexpr std::int64_t kRows = 4, kVectors = 2;  // sums stay in registers
constexpr std::int64_t kColumns = kVectors * kLanes;
constexpr std::int64_t kDepth = 64;  // a slice of B stays in the nearest cache
constexpr std::int64_t kShare = 32;  // rows of the result a thread takes at a time
constexpr std::int64_t kPanel = 8;   // rows of A packed at a time: one cache line of a transposed A

// C(rows, kColumns) += A^T B for A packed (depth, kPanel), B (depth, kColumns).
template <std::int64_t rows>
ATTEST_INLINE_CLONE void add_block(double* C, std::int64_t c_stride, const double* A,
                                   const double* B, std::int64_t b_stride, std::int64_t depth) {
  Lanes sum[rows][kVectors];
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t v = 0; v < kVectors; ++v) {
      std::memcpy(&sum[r][v], C + r * c_stride + v * kLanes, sizeof(Lanes));
    }
  }
  for (std::int64_t l = 0; l < depth; ++l) {
    Lanes b[kVectors];
    for (std::int64_t v = 0; v < kVectors; ++v) {
      std::memcpy(&b[v], B + l * b_stride + v * kLanes, sizeof(Lanes));
    }
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t v = 0; v < kVectors; ++v) sum[r][v] += A[l * kPanel + r] * b[v];
    }
  }
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t v = 0; v < kVectors; ++v) {
      std::memcpy(C + r * c_stride + v * kLanes, &sum[r][v], sizeof(Lanes));
    }
  }
}

// C(height, kColumns) += A^T B, as above.
ATTEST_INLINE_CLONE void add_panel(double* C, std::int64_t c_stride, std::int64_t height,
                                   const double* A, const double* B, std::int64_t b_stride,
                                   std::int64_t depth) {
  std::int64_t i = 0;
  for (; i + kRows <= height; i += kRows) {
    add_block<kRows>(C + i * c_stride, c_stride, A + i, B, b_stride, depth);
  }
  for (; i < height; ++i) add_block<1>(C + i * c_stride, c_stride, A + i, B, b_stride, depth);
}

// The last columns of a matrix, fewer than a block's, and zeros for the others.
ATTEST_INLINE_CLONE void widen(double* wide, const double* narrow, std::int64_t stride,
                               std::int64_t rows, std::int64_t columns) {
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < kColumns; ++c) {
      wide[r * kColumns + c] = c < columns ? narrow[r * stride + c] : 0;
    }
  }
}

// C(rows, columns) += A(rows, depth) B(depth, columns); A strided either way.
ATTEST_VECTOR_CLONES
void add(double* C, std::int64_t c_stride, std::int64_t rows, std::int64_t columns, const double* A,
         std::int64_t a_row, std::int64_t a_depth, const double* B, std::int64_t b_stride,
         std::int64_t depth) {
  double packed[kDepth * kPanel];  // strides of a power of two would crowd one set of the cache
  double wide_b[kDepth * kColumns], wide_c[kPanel * kColumns];
  const std::int64_t whole = columns / kColumns * kColumns, narrow = columns - whole;
  for (std::int64_t l = 0; l < depth; l += kDepth) {
    const std::int64_t deep = std::min(kDepth, depth - l);
    const double* b = B + l * b_stride;
    if (narrow != 0) widen(wide_b, b + whole, b_stride, deep, narrow);
    for (std::int64_t r = 0; r < rows; r += kPanel) {
      const std::int64_t height = std::min(kPanel, rows - r);
      for (std::int64_t k = 0; k < deep; ++k) {
        for (std::int64_t i = 0; i < height; ++i) {
          packed[k * kPanel + i] = A[(r + i) * a_row + (l + k) * a_depth];
        }
      }
      double* c_row = C + r * c_stride;
      for (std::int64_t c = 0; c < whole; c += kColumns) {
        add_panel(c_row + c, c_stride, height, packed, b + c, b_stride, deep);
      }
      if (narrow == 0) continue;
      widen(wide_c, c_row + whole, c_stride, height, narrow);
      add_panel(wide_c, kColumns, height, packed, wide_b, kColumns, deep);
      for (std::int64_t i = 0; i < height; ++i) {
        std::copy_n(wide_c + i * kColumns, narrow, c_row + i * c_stride + whole);
      }
    }
  }
}

}  // namespace

void add_product(const Eigen::Ref<const Matrix>& A, const Eigen::Ref<const Matrix>& B,
                 Eigen::Ref<Matrix> C) {
  add(C.data(), C.outerStride(), C.rows(), C.cols(), A.data(), A.outerStride(), 1, B.data(),
      B.outerStride(), B.rows());
}

void add_transposed_product(const Eigen::Ref<const Matrix>& A, const Eigen::Ref<const Matrix>& B,
                            Eigen::Ref<Matrix> C) {
  add(C.data(), C.outerStride(), C.rows(), C.cols(), A.data(), 1, A.outerStride(), B.data(),
      B.outerStride(), B.rows());
}

Matrix product(const Eigen::Ref<const Matrix>& A, const Eigen::Ref<const Matrix>& B) {
  Matrix C = Matrix::Zero(A.rows(), B.cols());
#pragma omp parallel for schedule(static) if (worth_threads(A.size() * B.cols()))
  for (Eigen::Index r = 0; r < C.rows(); r += kShare) {
    const Eigen::Index rows = std::min(kShare, C.rows() - r);
    add_product(A.middleRows(r, rows), B, C.middleRows(r, rows));
  }
  return C;
}

Matrix transposed_product(const Eigen::Ref<const Matrix>& A, const Eigen::Ref<const Matrix>& B) {
  Matrix C = Matrix::Zero(A.cols(), B.cols());
#pragma omp parallel for schedule(static) if (worth_threads(A.size() * B.cols()))
  for (Eigen::Index r = 0; r < C.rows(); r += kShare) {
    const Eigen::Index rows = std::min(kShare, C.rows() - r);
    add_transposed_product(A.middleCols(r, rows), B, C.middleRows(r, rows));
  }
  return C;
}

}  // namespace attest::reference
