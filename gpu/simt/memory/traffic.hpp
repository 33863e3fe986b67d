#pragma once

#include "gpu/simt/simt.hpp"

#ifndef __CUDACC__
#include "gpu/simt/memory/global_memory.hpp"
#endif

/// How kernels reach global memory: `mem.load(p, i)`, `mem.load4(p, i)`, `mem.store(p, i, v)`,
/// `mem.add(p, i, v)` with a policy `Mem` that is a parameter of the kernel. Uncounted leaves the
/// loads and stores that one would write by hand; Counted counts bytes, on the device in registers
/// and one atomic addition a block, in the emulation exactly and with bounds.
namespace attest::simt {
inline namespace ATTEST_SIMT_WORLD {

/// Plain pointers; the policy of kernels that are timed.
struct Uncounted {
  struct Sink {};
  template <class T>
  using In = const T* __restrict__;
  template <class T>
  using Out = T* __restrict__;

  __device__ explicit Uncounted(const Sink&) {}

  template <class T>
  __device__ T load(const T* p, std::int64_t i) {
    return p[i];
  }
  __device__ float4 load4(const float* p, std::int64_t i) {
    return *reinterpret_cast<const float4*>(p + i);
  }
  template <class T>
  __device__ void store(T* p, std::int64_t i, T value) {
    p[i] = value;
  }
  template <class T>
  __device__ void add(T* p, std::int64_t i, T value) {
    atomicAdd(p + i, value);
  }
  __device__ void count_read(int) {}
  __device__ void count_written(int) {}
  __device__ void flush() {}
};

#ifdef __CUDACC__

/// Bytes read and written by all blocks, summed in sink.bytes[0] and [1].
struct Counted {
  struct Sink {
    unsigned long long* bytes;
  };
  template <class T>
  using In = const T* __restrict__;
  template <class T>
  using Out = T* __restrict__;

  __device__ explicit Counted(const Sink& sink) : sink_(sink) {}

  template <class T>
  __device__ T load(const T* p, std::int64_t i) {
    read_ += sizeof(T);
    return p[i];
  }
  __device__ float4 load4(const float* p, std::int64_t i) {
    read_ += sizeof(float4);
    return *reinterpret_cast<const float4*>(p + i);
  }
  template <class T>
  __device__ void store(T* p, std::int64_t i, T value) {
    written_ += sizeof(T);
    p[i] = value;
  }
  template <class T>
  __device__ void add(T* p, std::int64_t i, T value) {
    read_ += sizeof(T);
    written_ += sizeof(T);
    atomicAdd(p + i, value);
  }
  /// Counts bytes that no register takes (gpu/simt/async/async_copy.cuh,
  /// gpu/simt/async/tensor_copy.cuh).
  __device__ void count_read(int bytes) { read_ += bytes; }
  __device__ void count_written(int bytes) { written_ += bytes; }
  /// Adds what this block counted; every lane of the block calls it once, at the end.
  __device__ void flush() {
    __shared__ unsigned long long block_bytes[2];
    const unsigned lane = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    if (lane == 0) block_bytes[0] = block_bytes[1] = 0;
    __syncthreads();
    atomicAdd(&block_bytes[0], read_);
    atomicAdd(&block_bytes[1], written_);
    __syncthreads();
    if (lane != 0) return;  // a block may have one lane
    for (int k = 0; k < 2; ++k) atomicAdd(sink_.bytes + k, block_bytes[k]);
  }

 private:
  Sink sink_;
  unsigned long long read_ = 0, written_ = 0;
};

#else

}  // namespace ATTEST_SIMT_WORLD

/// Opens a GlobalPointer after counting and checking. A value that may not be read is zero.
struct GlobalAccess {
  template <class Value, class T>
  static Value read(const GlobalPointer<const T>& p, std::int64_t i, SourceLine where) {
    Value value;
    global_read(p.tensor_, p.data_ + i, &value, sizeof value, where);
    return value;
  }
  template <class Value, class T>
  static void write(const GlobalPointer<T>& p, std::int64_t i, Value value, SourceLine where) {
    global_write(p.tensor_, p.data_ + i, &value, sizeof value, where);
  }
  template <class T>
  static void add(const GlobalPointer<T>& p, std::int64_t i, T value, SourceLine where) {
    global_add(p.tensor_, p.data_ + i, value, where);
  }
  /// For tensor copies, which are counted and checked themselves (gpu/simt/async/tensor_copy.cuh).
  template <class Map, class T, class Shape>
  static Map map(const GlobalPointer<T>& p, const Shape& shape) {
    require_valid(shape, p.data_);
    return {const_cast<std::byte*>(reinterpret_cast<const std::byte*>(p.data_)), p.tensor_, shape};
  }
};

inline namespace ATTEST_SIMT_WORLD {

/// Counted by tensor in the launch's report.
struct Counted {
  struct Sink {};
  template <class T>
  using In = GlobalPointer<const T>;
  template <class T>
  using Out = GlobalPointer<T>;

  explicit Counted(const Sink&) {}

  template <class T>
  T load(const GlobalPointer<T>& p, std::int64_t i, SourceLine where = SourceLine::here()) {
    return GlobalAccess::read<std::remove_const_t<T> >(GlobalPointer<const T>(p), i, where);
  }
  float4 load4(const GlobalPointer<const float>& p, std::int64_t i,
               SourceLine where = SourceLine::here()) {
    return GlobalAccess::read<float4>(p, i, where);
  }
  template <class T>
  void store(const GlobalPointer<T>& p, std::int64_t i, T value,
             SourceLine where = SourceLine::here()) {
    GlobalAccess::write(p, i, value, where);
  }
  template <class T>
  void add(const GlobalPointer<T>& p, std::int64_t i, T value,
           SourceLine where = SourceLine::here()) {
    GlobalAccess::add(p, i, value, where);
  }
  void flush() {}
};

#endif

}  // namespace ATTEST_SIMT_WORLD
}  // namespace attest::simt
