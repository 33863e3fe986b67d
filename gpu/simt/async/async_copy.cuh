#pragma once

#include "gpu/simt/memory/traffic.hpp"

#ifndef __CUDACC__
#include "gpu/simt/async/async_copy.hpp"
#endif

/// Asynchronous copies from global to shared memory by the instructions of the PTX ISA (compute
/// capability 8.0). Copied bytes may be touched by the lane after the wait that covers them, by
/// others after a barrier, too.  [gpu/simt/async/async_copy_test]
///
/// cp_async_4, cp_async_8, cp_async_16 (shared, mem, p, i): so many bytes from p + i, counted as
/// read by the policy `mem`. Both addresses are multiples of the size. cp_async_zfill_4,
/// cp_async_zfill_8, cp_async_zfill_16 (shared, mem, p, i, exists): zeros where the source does not
/// exist, which then is neither read nor counted. cp_async_commit(): the copies since the last
/// commit are a group. cp_async_wait<N>(): until all groups but the latest N have arrived.
/// cp_async_wait_all(): until all copies have arrived, also those without a commit.
namespace attest::simt {
inline namespace ATTEST_SIMT_WORLD {

#ifdef __CUDACC__

/// Only 16 bytes may pass by the first cache.
template <int kBytes>
__device__ void copy_async(void* shared, const void* from) {
  const auto to = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  if constexpr (kBytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(to), "l"(from), "n"(kBytes)
                 : "memory");
  }
}
template <int kBytes>
__device__ void copy_async(void* shared, const void* from, bool exists) {
  const auto to = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  const int bytes = exists ? kBytes : 0;
  if constexpr (kBytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes)
                 : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(from), "n"(kBytes),
                 "r"(bytes)
                 : "memory");
  }
}

template <class Mem, class T>
__device__ void cp_async_4(void* shared, Mem& mem, const T* p, std::int64_t i) {
  mem.count_read(4);
  copy_async<4>(shared, p + i);
}
template <class Mem, class T>
__device__ void cp_async_8(void* shared, Mem& mem, const T* p, std::int64_t i) {
  mem.count_read(8);
  copy_async<8>(shared, p + i);
}
template <class Mem, class T>
__device__ void cp_async_16(void* shared, Mem& mem, const T* p, std::int64_t i) {
  mem.count_read(16);
  copy_async<16>(shared, p + i);
}
template <class Mem, class T>
__device__ void cp_async_zfill_4(void* shared, Mem& mem, const T* p, std::int64_t i, bool exists) {
  mem.count_read(exists ? 4 : 0);
  copy_async<4>(shared, p + i, exists);
}
template <class Mem, class T>
__device__ void cp_async_zfill_8(void* shared, Mem& mem, const T* p, std::int64_t i, bool exists) {
  mem.count_read(exists ? 8 : 0);
  copy_async<8>(shared, p + i, exists);
}
template <class Mem, class T>
__device__ void cp_async_zfill_16(void* shared, Mem& mem, const T* p, std::int64_t i, bool exists) {
  mem.count_read(exists ? 16 : 0);
  copy_async<16>(shared, p + i, exists);
}

__device__ inline void cp_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int kMostPending>
__device__ void cp_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kMostPending) : "memory");
}
__device__ inline void cp_async_wait_all() { asm volatile("cp.async.wait_all;" ::: "memory"); }

#else

/// By the policy: what bypasses the count does not compile.
template <std::size_t kBytes, class T>
void copy_async(void* shared, Uncounted&, const T* p, std::int64_t i, SourceLine where) {
  begin_async_copy(shared, p + i, kBytes, where);
}
template <std::size_t kBytes, class T>
void copy_async(void* shared, Counted&, const GlobalPointer<T>& p, std::int64_t i,
                SourceLine where) {
  const auto bytes =
      GlobalAccess::read<std::array<std::byte, kBytes> >(GlobalPointer<const T>(p), i, where);
  begin_async_copy(shared, bytes.data(), kBytes, where);
}
template <std::size_t kBytes, class Mem, class Pointer>
void copy_async(void* shared, Mem& mem, const Pointer& p, std::int64_t i, bool exists,
                SourceLine where) {
  if (exists) {
    copy_async<kBytes>(shared, mem, p, i, where);
  } else {
    begin_async_copy(shared, std::array<std::byte, kBytes>{}.data(), kBytes, where);
  }
}

template <class Mem, class Pointer>
void cp_async_4(void* shared, Mem& mem, const Pointer& p, std::int64_t i,
                SourceLine where = SourceLine::here()) {
  copy_async<4>(shared, mem, p, i, where);
}
template <class Mem, class Pointer>
void cp_async_8(void* shared, Mem& mem, const Pointer& p, std::int64_t i,
                SourceLine where = SourceLine::here()) {
  copy_async<8>(shared, mem, p, i, where);
}
template <class Mem, class Pointer>
void cp_async_16(void* shared, Mem& mem, const Pointer& p, std::int64_t i,
                 SourceLine where = SourceLine::here()) {
  copy_async<16>(shared, mem, p, i, where);
}
template <class Mem, class Pointer>
void cp_async_zfill_4(void* shared, Mem& mem, const Pointer& p, std::int64_t i, bool exists,
                      SourceLine where = SourceLine::here()) {
  copy_async<4>(shared, mem, p, i, exists, where);
}
template <class Mem, class Pointer>
void cp_async_zfill_8(void* shared, Mem& mem, const Pointer& p, std::int64_t i, bool exists,
                      SourceLine where = SourceLine::here()) {
  copy_async<8>(shared, mem, p, i, exists, where);
}
template <class Mem, class Pointer>
void cp_async_zfill_16(void* shared, Mem& mem, const Pointer& p, std::int64_t i, bool exists,
                       SourceLine where = SourceLine::here()) {
  copy_async<16>(shared, mem, p, i, exists, where);
}

inline void cp_async_commit() { commit_async_copies(); }
template <int kMostPending>
void cp_async_wait() {
  static_assert(kMostPending >= 0);
  wait_for_async_copies(kMostPending);
}
inline void cp_async_wait_all() { wait_for_all_async_copies(); }

#endif

}  // namespace ATTEST_SIMT_WORLD
}  // namespace attest::simt
