#include "gpu/simt/memory/traffic.hpp"

/// One kernel three times: by hand, with the traffic policy off and on, and by hand with a mistake.
/// machine_code_test.py compares what the compiler makes of them. It copies rows through shared
/// memory, four words at a time and one by one, and adds to a word.
namespace attest::gpu::cuda {

using simt::Counted;
using simt::Uncounted;

template <class Mem>
struct Rows {
  typename Mem::template In<float> from;
  typename Mem::template Out<float> to, sum;
  std::int64_t count;
  typename Mem::Sink sink;
};

template <class Mem>
__device__ void copy_rows(const Rows<Mem>& a) {
  Mem mem(a.sink);
  ATTEST_DYNAMIC_SHARED(float, shared);
  for (std::int64_t i = threadIdx.x * 4; i < a.count; i += blockDim.x * 4) {
    shared_store4(shared + i, mem.load4(a.from, i));
  }
  __syncthreads();
  float sum = 0;
  for (std::int64_t i = threadIdx.x; i < a.count; i += blockDim.x) {
    const float value = shared[a.count - 1 - i] * mem.load(a.from, i);
    mem.store(a.to, i, value);
    sum += value;
  }
  mem.add(a.sum, 0, sum);
  mem.flush();
}

extern "C" __global__ void policy_off(Rows<Uncounted> a) { copy_rows(a); }
extern "C" __global__ void policy_on(Rows<Counted> a) { copy_rows(a); }

struct HandRows {
  const float* __restrict__ from;
  float* __restrict__ to;
  float* __restrict__ sum;
  std::int64_t count;
};

template <int kLast>
__device__ void copy_by_hand(const HandRows& a) {
  extern __shared__ __align__(1024) unsigned char attest_dynamic_shared[];
  float* const shared = reinterpret_cast<float*>(attest_dynamic_shared);
  for (std::int64_t i = threadIdx.x * 4; i < a.count; i += blockDim.x * 4) {
    *reinterpret_cast<float4*>(shared + i) = *reinterpret_cast<const float4*>(a.from + i);
  }
  __syncthreads();
  float sum = 0;
  for (std::int64_t i = threadIdx.x; i < a.count; i += blockDim.x) {
    const float value = shared[a.count - kLast - i] * a.from[i];
    a.to[i] = value;
    sum += value;
  }
  atomicAdd(a.sum, sum);
}

extern "C" __global__ void by_hand(HandRows a) { copy_by_hand<1>(a); }
extern "C" __global__ void by_hand_and_wrong(HandRows a) { copy_by_hand<2>(a); }

}  // namespace attest::gpu::cuda
