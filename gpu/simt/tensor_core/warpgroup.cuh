#pragma once

#include "gpu/simt/simt.hpp"
#include "gpu/simt/tensor_core/matrix_descriptor.hpp"

#ifdef __CUDACC__
#include "gpu/simt/tensor_core/warpgroup_device.cuh"
#else
#include "gpu/simt/tensor_core/warpgroup.hpp"
#endif

/// Matrix products of a warpgroup, four warps from a multiple of four on, one function for each
/// instruction of the PTX ISA (compute capability 9.0a). All 128 lanes call them together, at the
/// same place.  [gpu/simt/tensor_core/warpgroup_test]
///
/// wgmma_bf16<N, a, b>(d, A, B, adds), wgmma_f16<..>: D = A B + D, or D = A B, of (64, 16) by
/// (16, N) for N 8, 16, 32, 64, 128, 256; A and B by their descriptors, `a` and `b` the dimension
/// that lies contiguous. wgmma_bf16<N, b>(d, fragments, B, adds): A from registers.
/// wgmma_fence(): before the first product, and between any use of its registers and a product that
/// has them. wgmma_commit(): the products since the last one are a group. wgmma_wait<N>(): until
/// all groups but the latest N have ended; before, their registers are not to be used and their
/// shared memory is not to be written. matrix_descriptor(shared, leading, stride, swizzle).
///
/// Fragments: of lane 32 w + 4 i + j, rows counted from 16 w on.
///   d[4 k .. 4 k + 3]: (i, 8k + 2j) (i, 8k + 2j+1) (i+8, 8k + 2j) (i+8, 8k + 2j+1)
///   a as tensor_core.cuh has it
///
/// Rounding: products are exact, sums at least as exact as in float32; a device leaves their order
///           open, the emulation sums each instruction in float64 and rounds once.
#ifndef __CUDACC__
namespace attest::simt {
inline namespace ATTEST_SIMT_WORLD {

inline std::uint64_t matrix_descriptor(const void* shared, unsigned leading_bytes,
                                       unsigned stride_bytes, Swizzle swizzle,
                                       SourceLine where = SourceLine::here()) {
  return describe_matrix(shared, leading_bytes, stride_bytes, swizzle, where);
}

inline void wgmma_fence(SourceLine where = SourceLine::here()) { group_fence(where); }
inline void wgmma_commit(SourceLine where = SourceLine::here()) { group_commit(where); }
template <int kMostPending>
void wgmma_wait(SourceLine where = SourceLine::here()) {
  static_assert(kMostPending >= 0 && kMostPending <= 7);
  group_wait(kMostPending, where);
}

template <int kColumns>
concept ProductColumns = kColumns == 8 || kColumns == 16 || kColumns == 32 || kColumns == 64 ||
                         kColumns == 128 || kColumns == 256;

template <int kColumns, Major kMajorA, Major kMajorB>
requires ProductColumns<kColumns>
void wgmma_bf16(float (&d)[kColumns / 2], std::uint64_t a, std::uint64_t b, bool adds,
                SourceLine where = SourceLine::here()) {
  group_product({d, nullptr, {a, b, kColumns, Factor::bf16, kMajorA, kMajorB, adds}}, where);
}
template <int kColumns, Major kMajorA, Major kMajorB>
requires ProductColumns<kColumns>
void wgmma_f16(float (&d)[kColumns / 2], std::uint64_t a, std::uint64_t b, bool adds,
               SourceLine where = SourceLine::here()) {
  group_product({d, nullptr, {a, b, kColumns, Factor::f16, kMajorA, kMajorB, adds}}, where);
}
template <int kColumns, Major kMajorB>
requires ProductColumns<kColumns>
void wgmma_bf16(float (&d)[kColumns / 2], const unsigned (&a)[4], std::uint64_t b, bool adds,
                SourceLine where = SourceLine::here()) {
  group_product({d, a, {0, b, kColumns, Factor::bf16, Major::k, kMajorB, adds, true}}, where);
}
template <int kColumns, Major kMajorB>
requires ProductColumns<kColumns>
void wgmma_f16(float (&d)[kColumns / 2], const unsigned (&a)[4], std::uint64_t b, bool adds,
               SourceLine where = SourceLine::here()) {
  group_product({d, a, {0, b, kColumns, Factor::f16, Major::k, kMajorB, adds, true}}, where);
}

}  // namespace ATTEST_SIMT_WORLD
}  // namespace attest::simt
#endif
