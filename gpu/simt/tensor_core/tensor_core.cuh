#pragma once

#include "gpu/simt/simt.hpp"

#ifndef __CUDACC__
#include "gpu/simt/tensor_core/tensor_core.hpp"
#endif

/// Matrix products of a warp, one function for each instruction of the PTX ISA (compute capability
/// 8.0). All 32 lanes call them together, at the same place.
/// [gpu/simt/tensor_core/tensor_core_test]
///
/// Fragments: of lane 4 i + j, as bits of bf16 or f16, two to a word, the first in the low half.
///   a (16, 16)  a[0]: (i, 2j) (i, 2j+1)      a[1]: (i+8, 2j) (i+8, 2j+1)
///               a[2]: (i, 2j+8) (i, 2j+9)    a[3]: (i+8, 2j+8) (i+8, 2j+9)
///   b (16, 8)   b[0]: (2j, i) (2j+1, i)      b[1]: (2j+8, i) (2j+9, i)
///   c, d (16, 8) in float32: (i, 2j) (i, 2j+1) (i+8, 2j) (i+8, 2j+1)
///
/// Rounding: products are exact, sums at least as exact as in float32; a device leaves their order
///           open, the emulation sums in float64 and rounds once.
namespace attest::simt {
inline namespace ATTEST_SIMT_WORLD {

#ifdef __CUDACC__

__device__ inline unsigned matrix_address(const void* row) {
  return static_cast<unsigned>(__cvta_generic_to_shared(row));
}

/// 8 x 8 matrices of 16-bit elements from shared memory: lane 8 k + i names row i of matrix k, 16
/// bytes at a multiple of 16. Lane 4 i + j takes (i, 2j) (i, 2j+1) of each, transposed (2j, i)
/// (2j+1, i).
__device__ inline void ldmatrix_x1(unsigned (&r)[1], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];"
               : "=r"(r[0])
               : "r"(matrix_address(row))
               : "memory");
}
__device__ inline void ldmatrix_x2(unsigned (&r)[2], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
               : "=r"(r[0]), "=r"(r[1])
               : "r"(matrix_address(row))
               : "memory");
}
__device__ inline void ldmatrix_x4(unsigned (&r)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(matrix_address(row))
               : "memory");
}
__device__ inline void ldmatrix_x1_trans(unsigned (&r)[1], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];"
               : "=r"(r[0])
               : "r"(matrix_address(row))
               : "memory");
}
__device__ inline void ldmatrix_x2_trans(unsigned (&r)[2], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
               : "=r"(r[0]), "=r"(r[1])
               : "r"(matrix_address(row))
               : "memory");
}
__device__ inline void ldmatrix_x4_trans(unsigned (&r)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(matrix_address(row))
               : "memory");
}

/// d = a b + c; d may be c.
__device__ inline void mma_m16n8k16_bf16(float (&d)[4], const unsigned (&a)[4],
                                         const unsigned (&b)[2], const float (&c)[4]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%10, %11, %12, %13};"
      : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(c[0]), "f"(c[1]),
        "f"(c[2]), "f"(c[3]));
}
__device__ inline void mma_m16n8k16_f16(float (&d)[4], const unsigned (&a)[4],
                                        const unsigned (&b)[2], const float (&c)[4]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%10, %11, %12, %13};"
      : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(c[0]), "f"(c[1]),
        "f"(c[2]), "f"(c[3]));
}

/// Two values rounded to the nearest, ties to even, `low` in the low half.
__device__ inline unsigned cvt_bf16x2(float high, float low) {
  unsigned word;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  return word;
}
__device__ inline unsigned cvt_f16x2(float high, float low) {
  unsigned word;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  return word;
}

#else

inline void ldmatrix_x1(unsigned (&r)[1], const void* row, SourceLine where = SourceLine::here()) {
  load_matrices(r, row, 1, false, "ldmatrix.x1", where);
}
inline void ldmatrix_x2(unsigned (&r)[2], const void* row, SourceLine where = SourceLine::here()) {
  load_matrices(r, row, 2, false, "ldmatrix.x2", where);
}
inline void ldmatrix_x4(unsigned (&r)[4], const void* row, SourceLine where = SourceLine::here()) {
  load_matrices(r, row, 4, false, "ldmatrix.x4", where);
}
inline void ldmatrix_x1_trans(unsigned (&r)[1], const void* row,
                              SourceLine where = SourceLine::here()) {
  load_matrices(r, row, 1, true, "ldmatrix.x1.trans", where);
}
inline void ldmatrix_x2_trans(unsigned (&r)[2], const void* row,
                              SourceLine where = SourceLine::here()) {
  load_matrices(r, row, 2, true, "ldmatrix.x2.trans", where);
}
inline void ldmatrix_x4_trans(unsigned (&r)[4], const void* row,
                              SourceLine where = SourceLine::here()) {
  load_matrices(r, row, 4, true, "ldmatrix.x4.trans", where);
}

inline void mma_m16n8k16_bf16(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2],
                              const float (&c)[4], SourceLine where = SourceLine::here()) {
  multiply_matrices(d, a, b, c, Half::bf16, where);
}
inline void mma_m16n8k16_f16(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2],
                             const float (&c)[4], SourceLine where = SourceLine::here()) {
  multiply_matrices(d, a, b, c, Half::f16, where);
}

inline unsigned cvt_bf16x2(float high, float low) { return pack_halves(high, low, Half::bf16); }
inline unsigned cvt_f16x2(float high, float low) { return pack_halves(high, low, Half::f16); }

#endif

}  // namespace ATTEST_SIMT_WORLD
}  // namespace attest::simt
