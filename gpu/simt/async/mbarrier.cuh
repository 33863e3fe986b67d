#pragma once

#include "gpu/simt/simt.hpp"

#ifndef __CUDACC__
#include "gpu/simt/async/mbarrier.hpp"
#endif

/// Barriers in shared memory by the instructions of the PTX ISA (compute capability 9.0), one
/// function for each. A phase ends when `count` arrivals have come and no expected byte is missing;
/// what a lane does before it arrives comes before what another does after it has waited.
/// [gpu/simt/async/mbarrier_test]
///
/// mbarrier_init(barrier, count): phase 0 begins; fence_mbarrier_init() makes it seen by tensor
/// copies, a barrier of the block by other lanes. mbarrier_inval(barrier): its bytes may be used
/// otherwise. mbarrier_arrive(barrier). mbarrier_expect_tx(barrier, bytes): of tensor copies, in
/// this phase. mbarrier_arrive_expect_tx(barrier, bytes): that, then an arrival.
/// mbarrier_try_wait(barrier, parity): whether the phase of that parity has ended, the running one
/// or the one before; waits for a while (the emulation until it has). mbarrier_wait(barrier,
/// parity): until it has. fence_proxy_async(): what was written to shared memory by plain accesses
/// is seen by tensor copies and products of a warpgroup.
namespace attest::simt {
inline namespace ATTEST_SIMT_WORLD {

#ifdef __CUDACC__

__device__ inline unsigned barrier_address(const std::uint64_t* barrier) {
  return static_cast<unsigned>(__cvta_generic_to_shared(barrier));
}

__device__ inline void mbarrier_init(std::uint64_t* barrier, unsigned count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier_address(barrier)), "r"(count)
               : "memory");
}
__device__ inline void mbarrier_inval(std::uint64_t* barrier) {
  asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(barrier_address(barrier)) : "memory");
}
__device__ inline void mbarrier_arrive(std::uint64_t* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier_address(barrier))
               : "memory");
}
__device__ inline void mbarrier_expect_tx(std::uint64_t* barrier, unsigned bytes) {
  asm volatile(
      "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(barrier_address(barrier)),
      "r"(bytes)
      : "memory");
}
__device__ inline void mbarrier_arrive_expect_tx(std::uint64_t* barrier, unsigned bytes) {
  asm volatile(
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier_address(barrier)),
      "r"(bytes)
      : "memory");
}
__device__ inline bool mbarrier_try_wait(std::uint64_t* barrier, unsigned parity) {
  unsigned ended;
  asm volatile(
      "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; "
      "selp.u32 %0, 1, 0, p; }"
      : "=r"(ended)
      : "r"(barrier_address(barrier)), "r"(parity)
      : "memory");
  return ended != 0;
}
__device__ inline void mbarrier_wait(std::uint64_t* barrier, unsigned parity) {
  while (!mbarrier_try_wait(barrier, parity)) {
  }
}

__device__ inline void fence_mbarrier_init() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ inline void fence_proxy_async() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

#else

inline void mbarrier_init(std::uint64_t* barrier, unsigned count,
                          SourceLine where = SourceLine::here()) {
  mbarrier_begin(barrier, count, where);
}
inline void mbarrier_inval(std::uint64_t* barrier, SourceLine where = SourceLine::here()) {
  mbarrier_end(barrier, where);
}
inline void mbarrier_arrive(std::uint64_t* barrier, SourceLine where = SourceLine::here()) {
  mbarrier_arrival(barrier, where);
}
inline void mbarrier_expect_tx(std::uint64_t* barrier, unsigned bytes,
                               SourceLine where = SourceLine::here()) {
  mbarrier_expectation(barrier, bytes, where);
}
inline void mbarrier_arrive_expect_tx(std::uint64_t* barrier, unsigned bytes,
                                      SourceLine where = SourceLine::here()) {
  mbarrier_expectation(barrier, bytes, where);
  mbarrier_arrival(barrier, where);
}
inline bool mbarrier_try_wait(std::uint64_t* barrier, unsigned parity,
                              SourceLine where = SourceLine::here()) {
  mbarrier_wait_for(barrier, parity, where);
  return true;
}
inline void mbarrier_wait(std::uint64_t* barrier, unsigned parity,
                          SourceLine where = SourceLine::here()) {
  mbarrier_wait_for(barrier, parity, where);
}

inline void fence_mbarrier_init() { mbarrier_fence(); }
inline void fence_proxy_async() { async_fence(); }

#endif

}  // namespace ATTEST_SIMT_WORLD
}  // namespace attest::simt
