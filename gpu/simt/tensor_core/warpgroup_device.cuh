#pragma once

#include "gpu/simt/simt.hpp"
#include "gpu/simt/tensor_core/matrix_descriptor.hpp"

// The instructions of warpgroup.cuh for a device. An operand list of PTX names each register, so
// that macros name those of the accumulators, 4, 8, .. 128 of them.
#define ATTEST_D4(k) "+f"(d[k]), "+f"(d[k + 1]), "+f"(d[k + 2]), "+f"(d[k + 3])
#define ATTEST_D8(k) ATTEST_D4(k), ATTEST_D4(k + 4)
#define ATTEST_D16(k) ATTEST_D8(k), ATTEST_D8(k + 8)
#define ATTEST_D32(k) ATTEST_D16(k), ATTEST_D16(k + 16)
#define ATTEST_D64(k) ATTEST_D32(k), ATTEST_D32(k + 32)
#define ATTEST_D128(k) ATTEST_D64(k), ATTEST_D64(k + 64)
#define ATTEST_R4 "%0, %1, %2, %3"
#define ATTEST_R8 \
  ATTEST_R4       \
  ", "            \
  "%4, %5, %6, %7"
#define ATTEST_R16 \
  ATTEST_R8        \
  ", "             \
  "%8, %9, %10, %11, %12, %13, %14, %15"
#define ATTEST_R32 \
  ATTEST_R16       \
  ", "             \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define ATTEST_R64                                                                   \
  ATTEST_R32                                                                         \
  ", "                                                                               \
  "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
  "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define ATTEST_R128                                                                            \
  ATTEST_R64                                                                                   \
  ", "                                                                                         \
  "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "           \
  "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "           \
  "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, "     \
  "%111, "                                                                                     \
  "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, " \
  "%127"

// The predicate says whether D is on the right, too; factors are not negated.
#define ATTEST_WGMMA_SHARED(columns, types, words, A, B, adding, a_major, b_major)          \
  asm volatile("{ .reg .pred p; setp.ne.b32 p, " adding                                     \
               ", 0; wgmma.mma_async.sync.aligned.m64n" #columns "k16.f32." types           \
               " {" ATTEST_R##words "}, " A ", " B ", p, 1, 1, " a_major ", " b_major "; }" \
               : ATTEST_D##words(0)                                                         \
               : "l"(a), "l"(b), "r"(adds ? 1 : 0), "n"(static_cast<int>(kMajorA)),         \
                 "n"(static_cast<int>(kMajorB))                                             \
               : "memory")
#define ATTEST_WGMMA_REGISTERS(columns, types, words, a0, a1, a2, a3, B, adding, b_major) \
  asm volatile("{ .reg .pred p; setp.ne.b32 p, " adding                                   \
               ", 0; wgmma.mma_async.sync.aligned.m64n" #columns "k16.f32." types         \
               " {" ATTEST_R##words "}, {" a0 ", " a1 ", " a2 ", " a3 "}, " B             \
                                    ", p, 1, 1, " b_major "; }"                           \
               : ATTEST_D##words(0)                                                       \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(adds ? 1 : 0),   \
                 "n"(static_cast<int>(kMajorB))                                           \
               : "memory")

namespace attest::simt {
inline namespace ATTEST_SIMT_WORLD {

__device__ inline std::uint64_t matrix_descriptor(const void* shared, unsigned leading_bytes,
                                                  unsigned stride_bytes, Swizzle swizzle) {
  return encode({static_cast<unsigned>(__cvta_generic_to_shared(shared)), leading_bytes,
                 stride_bytes, swizzle, 0});
}

__device__ inline void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ inline void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int kMostPending>
__device__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kMostPending) : "memory");
}

template <int kColumns, Major kMajorA, Major kMajorB>
__device__ void wgmma_bf16(float (&d)[kColumns / 2], std::uint64_t a, std::uint64_t b, bool adds) {
  if constexpr (kColumns == 8) {
    ATTEST_WGMMA_SHARED(8, "bf16.bf16", 4, "%4", "%5", "%6", "%7", "%8");
  } else if constexpr (kColumns == 16) {
    ATTEST_WGMMA_SHARED(16, "bf16.bf16", 8, "%8", "%9", "%10", "%11", "%12");
  } else if constexpr (kColumns == 32) {
    ATTEST_WGMMA_SHARED(32, "bf16.bf16", 16, "%16", "%17", "%18", "%19", "%20");
  } else if constexpr (kColumns == 64) {
    ATTEST_WGMMA_SHARED(64, "bf16.bf16", 32, "%32", "%33", "%34", "%35", "%36");
  } else if constexpr (kColumns == 128) {
    ATTEST_WGMMA_SHARED(128, "bf16.bf16", 64, "%64", "%65", "%66", "%67", "%68");
  } else if constexpr (kColumns == 256) {
    ATTEST_WGMMA_SHARED(256, "bf16.bf16", 128, "%128", "%129", "%130", "%131", "%132");
  } else {
    static_assert(kColumns == 8, "8, 16, 32, 64, 128 or 256 columns");
  }
}
template <int kColumns, Major kMajorB>
__device__ void wgmma_bf16(float (&d)[kColumns / 2], const unsigned (&a)[4], std::uint64_t b,
                           bool adds) {
  if constexpr (kColumns == 8) {
    ATTEST_WGMMA_REGISTERS(8, "bf16.bf16", 4, "%4", "%5", "%6", "%7", "%8", "%9", "%10");
  } else if constexpr (kColumns == 16) {
    ATTEST_WGMMA_REGISTERS(16, "bf16.bf16", 8, "%8", "%9", "%10", "%11", "%12", "%13", "%14");
  } else if constexpr (kColumns == 32) {
    ATTEST_WGMMA_REGISTERS(32, "bf16.bf16", 16, "%16", "%17", "%18", "%19", "%20", "%21", "%22");
  } else if constexpr (kColumns == 64) {
    ATTEST_WGMMA_REGISTERS(64, "bf16.bf16", 32, "%32", "%33", "%34", "%35", "%36", "%37", "%38");
  } else if constexpr (kColumns == 128) {
    ATTEST_WGMMA_REGISTERS(128, "bf16.bf16", 64, "%64", "%65", "%66", "%67", "%68", "%69", "%70");
  } else if constexpr (kColumns == 256) {
    ATTEST_WGMMA_REGISTERS(256, "bf16.bf16", 128, "%128", "%129", "%130", "%131", "%132", "%133",
                           "%134");
  } else {
    static_assert(kColumns == 8, "8, 16, 32, 64, 128 or 256 columns");
  }
}
template <int kColumns, Major kMajorA, Major kMajorB>
__device__ void wgmma_f16(float (&d)[kColumns / 2], std::uint64_t a, std::uint64_t b, bool adds) {
  if constexpr (kColumns == 8) {
    ATTEST_WGMMA_SHARED(8, "f16.f16", 4, "%4", "%5", "%6", "%7", "%8");
  } else if constexpr (kColumns == 16) {
    ATTEST_WGMMA_SHARED(16, "f16.f16", 8, "%8", "%9", "%10", "%11", "%12");
  } else if constexpr (kColumns == 32) {
    ATTEST_WGMMA_SHARED(32, "f16.f16", 16, "%16", "%17", "%18", "%19", "%20");
  } else if constexpr (kColumns == 64) {
    ATTEST_WGMMA_SHARED(64, "f16.f16", 32, "%32", "%33", "%34", "%35", "%36");
  } else if constexpr (kColumns == 128) {
    ATTEST_WGMMA_SHARED(128, "f16.f16", 64, "%64", "%65", "%66", "%67", "%68");
  } else if constexpr (kColumns == 256) {
    ATTEST_WGMMA_SHARED(256, "f16.f16", 128, "%128", "%129", "%130", "%131", "%132");
  } else {
    static_assert(kColumns == 8, "8, 16, 32, 64, 128 or 256 columns");
  }
}
template <int kColumns, Major kMajorB>
__device__ void wgmma_f16(float (&d)[kColumns / 2], const unsigned (&a)[4], std::uint64_t b,
                          bool adds) {
  if constexpr (kColumns == 8) {
    ATTEST_WGMMA_REGISTERS(8, "f16.f16", 4, "%4", "%5", "%6", "%7", "%8", "%9", "%10");
  } else if constexpr (kColumns == 16) {
    ATTEST_WGMMA_REGISTERS(16, "f16.f16", 8, "%8", "%9", "%10", "%11", "%12", "%13", "%14");
  } else if constexpr (kColumns == 32) {
    ATTEST_WGMMA_REGISTERS(32, "f16.f16", 16, "%16", "%17", "%18", "%19", "%20", "%21", "%22");
  } else if constexpr (kColumns == 64) {
    ATTEST_WGMMA_REGISTERS(64, "f16.f16", 32, "%32", "%33", "%34", "%35", "%36", "%37", "%38");
  } else if constexpr (kColumns == 128) {
    ATTEST_WGMMA_REGISTERS(128, "f16.f16", 64, "%64", "%65", "%66", "%67", "%68", "%69", "%70");
  } else if constexpr (kColumns == 256) {
    ATTEST_WGMMA_REGISTERS(256, "f16.f16", 128, "%128", "%129", "%130", "%131", "%132", "%133",
                           "%134");
  } else {
    static_assert(kColumns == 8, "8, 16, 32, 64, 128 or 256 columns");
  }
}

}  // namespace ATTEST_SIMT_WORLD
}  // namespace attest::simt

#undef ATTEST_D4
#undef ATTEST_D8
#undef ATTEST_D16
#undef ATTEST_D32
#undef ATTEST_D64
#undef ATTEST_D128
#undef ATTEST_R4
#undef ATTEST_R8
#undef ATTEST_R16
#undef ATTEST_R32
#undef ATTEST_R64
#undef ATTEST_R128
#undef ATTEST_WGMMA_SHARED
#undef ATTEST_WGMMA_REGISTERS
