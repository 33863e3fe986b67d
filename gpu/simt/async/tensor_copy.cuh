#pragma once

#include "gpu/simt/async/mbarrier.cuh"
#include "gpu/simt/memory/traffic.hpp"

#ifdef __CUDACC__
#include "gpu/simt/async/tensor_map.cuh"
#else
#include "gpu/simt/async/tensor_copy.hpp"
#endif

/// Copies of a tensor's boxes between global and shared memory by the instructions of the PTX ISA
/// (compute capability 9.0), one function for each; one lane calls them.
/// [gpu/simt/async/tensor_copy_test]
///
/// cp_async_bulk_tensor_2d(shared, mem, map, x, y, barrier), .._3d(shared, mem, map, x, y, z,
/// barrier): the box whose first element has those coordinates, zeros where there is none. Its
/// bytes, zeros too, complete on the mbarrier. cp_async_bulk_tensor_2d_store(mem, map, x, y,
/// shared), .._3d_store(mem, map, x, y, z, shared): elements that exist. cp_async_bulk_commit():
/// the lane's stores since the last one are a group. cp_async_bulk_wait<N>(): until all groups but
/// the latest N are written; cp_async_bulk_wait_read<N>(): until shared memory may be overwritten.
///
/// A box lies in shared memory at a multiple of 128 bytes, its innermost dimension first, swizzled
/// by address. Elements that exist are counted by the policy `mem`.
namespace attest::simt {
inline namespace ATTEST_SIMT_WORLD {

#ifdef __CUDACC__

__device__ inline unsigned box_address(const void* shared) {
  return static_cast<unsigned>(__cvta_generic_to_shared(shared));
}

template <class Mem>
__device__ void cp_async_bulk_tensor_2d(void* shared, Mem& mem, const TensorMap& map, int x, int y,
                                        std::uint64_t* barrier) {
  mem.count_read(map.shape.inside_bytes(x, y, 0));
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, "
      "%3}], [%4];" ::"r"(box_address(shared)),
      "l"(&map.encoded), "r"(x), "r"(y), "r"(barrier_address(barrier))
      : "memory");
}
template <class Mem>
__device__ void cp_async_bulk_tensor_3d(void* shared, Mem& mem, const TensorMap& map, int x, int y,
                                        int z, std::uint64_t* barrier) {
  mem.count_read(map.shape.inside_bytes(x, y, z));
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, "
      "%3, %4}], [%5];" ::"r"(box_address(shared)),
      "l"(&map.encoded), "r"(x), "r"(y), "r"(z), "r"(barrier_address(barrier))
      : "memory");
}
template <class Mem>
__device__ void cp_async_bulk_tensor_2d_store(Mem& mem, const TensorMap& map, int x, int y,
                                              const void* shared) {
  mem.count_written(map.shape.inside_bytes(x, y, 0));
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(
                   &map.encoded),
               "r"(x), "r"(y), "r"(box_address(shared))
               : "memory");
}
template <class Mem>
__device__ void cp_async_bulk_tensor_3d_store(Mem& mem, const TensorMap& map, int x, int y, int z,
                                              const void* shared) {
  mem.count_written(map.shape.inside_bytes(x, y, z));
  asm volatile(
      "cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%1, %2, %3}], [%4];" ::"l"(
          &map.encoded),
      "r"(x), "r"(y), "r"(z), "r"(box_address(shared))
      : "memory");
}

__device__ inline void cp_async_bulk_commit() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
template <int kMostPending>
__device__ void cp_async_bulk_wait() {
  asm volatile("cp.async.bulk.wait_group %0;" ::"n"(kMostPending) : "memory");
}
template <int kMostPending>
__device__ void cp_async_bulk_wait_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(kMostPending) : "memory");
}

#else

}  // namespace ATTEST_SIMT_WORLD

/// A map of a tensor of the launch's global memory, or of one whose copies are not counted. Throws
/// InvalidProblem where require_valid does.
template <class T>
TensorMap map_tensor(const GlobalPointer<T>& tensor, const TensorShape& shape) {
  return GlobalAccess::map<TensorMap>(tensor, shape);
}
template <class T>
TensorMap map_tensor(const T* data, const TensorShape& shape) {
  require_valid(shape, data);
  return {const_cast<std::byte*>(reinterpret_cast<const std::byte*>(data)), -1, shape};
}

inline namespace ATTEST_SIMT_WORLD {

template <class Mem>
void cp_async_bulk_tensor_2d(void* shared, Mem&, const TensorMap& map, int x, int y,
                             std::uint64_t* barrier, SourceLine where = SourceLine::here()) {
  begin_tensor_load(shared, map, std::is_same_v<Mem, Counted>, {x, y, 0}, barrier, where);
}
template <class Mem>
void cp_async_bulk_tensor_3d(void* shared, Mem&, const TensorMap& map, int x, int y, int z,
                             std::uint64_t* barrier, SourceLine where = SourceLine::here()) {
  begin_tensor_load(shared, map, std::is_same_v<Mem, Counted>, {x, y, z}, barrier, where);
}
template <class Mem>
void cp_async_bulk_tensor_2d_store(Mem&, const TensorMap& map, int x, int y, const void* shared,
                                   SourceLine where = SourceLine::here()) {
  begin_tensor_store(map, std::is_same_v<Mem, Counted>, {x, y, 0}, shared, where);
}
template <class Mem>
void cp_async_bulk_tensor_3d_store(Mem&, const TensorMap& map, int x, int y, int z,
                                   const void* shared, SourceLine where = SourceLine::here()) {
  begin_tensor_store(map, std::is_same_v<Mem, Counted>, {x, y, z}, shared, where);
}

inline void cp_async_bulk_commit() { commit_tensor_stores(); }
template <int kMostPending>
void cp_async_bulk_wait() {
  static_assert(kMostPending >= 0);
  wait_for_tensor_stores(kMostPending);
}
template <int kMostPending>
void cp_async_bulk_wait_read() {
  static_assert(kMostPending >= 0);
  wait_for_tensor_stores(kMostPending);
}

#endif

}  // namespace ATTEST_SIMT_WORLD
}  // namespace attest::simt
