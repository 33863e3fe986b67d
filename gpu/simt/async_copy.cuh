#pragma once

#include "gpu/simt/traffic.hpp"

#ifndef __CUDACC__
#include "gpu/simt/async_copy.hpp"
#endif

/// Asynchronous copies from global to shared memory, one function for each instruction of the PTX
/// ISA (compute capability 8.0): cp_async_4, _8, _16 copy so many bytes from p + i, counted by the
/// policy `mem`; both addresses are multiples of the size. What is copied may be touched by the
/// lane after the wait that covers it, by others after a barrier, too. [gpu/simt/async_copy_test]
namespace attest::simt {
inline namespace ATTEST_SIMT_WORLD {

#ifdef __CUDACC__

__device__ inline unsigned shared_address(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

template <class Mem, class T>
__device__ void cp_async_4(void* shared, Mem& mem, const T* p, std::int64_t i) {
  mem.count_read(4);
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(shared_address(shared)), "l"(p + i)
               : "memory");
}
template <class Mem, class T>
__device__ void cp_async_8(void* shared, Mem& mem, const T* p, std::int64_t i) {
  mem.count_read(8);
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"(shared_address(shared)), "l"(p + i)
               : "memory");
}
template <class Mem, class T>
__device__ void cp_async_16(void* shared, Mem& mem, const T* p, std::int64_t i) {
  mem.count_read(16);
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(shared)), "l"(p + i)
               : "memory");
}

/// The copies since the last commit are a group.
__device__ inline void cp_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }

/// Waits for all groups but the latest `kMostPending`.
template <int kMostPending>
__device__ void cp_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kMostPending) : "memory");
}

/// Waits for all copies, also those without a commit.
__device__ inline void cp_async_wait_all() { asm volatile("cp.async.wait_all;" ::: "memory"); }

#else

template <std::size_t kBytes, class T>
void copy_async(void* shared, const T* p, std::int64_t i, SourceLine where) {
  begin_async_copy(shared, p + i, kBytes, where);
}
template <std::size_t kBytes, class T>
void copy_async(void* shared, const GlobalPointer<T>& p, std::int64_t i, SourceLine where) {
  const auto bytes =
      GlobalAccess::read<std::array<std::byte, kBytes> >(GlobalPointer<const T>(p), i, where);
  begin_async_copy(shared, bytes.data(), kBytes, where);
}

template <class Mem, class Pointer>
void cp_async_4(void* shared, Mem&, const Pointer& p, std::int64_t i,
                SourceLine where = SourceLine::here()) {
  copy_async<4>(shared, p, i, where);
}
template <class Mem, class Pointer>
void cp_async_8(void* shared, Mem&, const Pointer& p, std::int64_t i,
                SourceLine where = SourceLine::here()) {
  copy_async<8>(shared, p, i, where);
}
template <class Mem, class Pointer>
void cp_async_16(void* shared, Mem&, const Pointer& p, std::int64_t i,
                 SourceLine where = SourceLine::here()) {
  copy_async<16>(shared, p, i, where);
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
