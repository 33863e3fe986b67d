// Every instruction of mbarrier.cuh, tensor_copy.cuh and warpgroup.cuh, and a kernel that uses
// them, for a device of compute capability 9.0a: that they compile.
#include "gpu/simt/testing/pipelined_product.cuh"

namespace attest::simt {

template <int kColumns>
__device__ void multiply(float* out, std::uint64_t a, std::uint64_t b, bool adds) {
  float d[kColumns / 2] = {};
  unsigned fragments[4] = {threadIdx.x, 2, 3, 4};
  wgmma_fence();
  wgmma_bf16<kColumns, Major::k, Major::k>(d, a, b, adds);
  wgmma_f16<kColumns, Major::rows, Major::rows>(d, a, b, adds);
  wgmma_bf16<kColumns, Major::rows>(d, fragments, b, adds);
  wgmma_f16<kColumns, Major::k>(d, fragments, b, adds);
  wgmma_commit();
  wgmma_wait<0>();
  for (int k = 0; k < kColumns / 2; ++k) out[k * 128 + threadIdx.x] = d[k];
}

__global__ void multiply_all(float* out, std::uint64_t a, std::uint64_t b, bool adds) {
  multiply<8>(out, a, b, adds);
  multiply<16>(out, a, b, adds);
  multiply<32>(out, a, b, adds);
  multiply<64>(out, a, b, adds);
  multiply<128>(out, a, b, adds);
  multiply<256>(out, a, b, adds);
}

template <class Mem>
__global__ void copy_all(const __grid_constant__ TensorMap map, typename Mem::Sink sink, int x) {
  Mem mem(sink);
  ATTEST_DYNAMIC_SHARED(unsigned char, box);
  ATTEST_SHARED(std::uint64_t, full, [1]);
  if (threadIdx.x == 0) {
    mbarrier_init(full, 2);
    fence_mbarrier_init();
    mbarrier_expect_tx(full, 64);
    mbarrier_arrive_expect_tx(full, 64);
    cp_async_bulk_tensor_2d(box, mem, map, x, 2, full);
    cp_async_bulk_tensor_3d(box, mem, map, x, 2, 3, full);
    mbarrier_arrive(full);
    if (!mbarrier_try_wait(full, 0)) mbarrier_wait(full, 0);
    mbarrier_inval(full);
    fence_proxy_async();
    cp_async_bulk_tensor_2d_store(mem, map, x, 2, box);
    cp_async_bulk_commit();
    cp_async_bulk_tensor_3d_store(mem, map, x, 2, 3, box);
    cp_async_bulk_commit();
    cp_async_bulk_wait_read<1>();
    cp_async_bulk_wait<0>();
  }
  mem.flush();
}

// On the host: the driver's own form of a map.
TensorMap map_of(const void* data) { return map_tensor(data, TensorShape{}); }

template __global__ void copy_all<Uncounted>(const __grid_constant__ TensorMap, Uncounted::Sink,
                                             int);
template __global__ void copy_all<Counted>(const __grid_constant__ TensorMap, Counted::Sink, int);
template __global__ void pipelined_product<Uncounted, PipelineBug::none>(
    const __grid_constant__ TensorMap, const __grid_constant__ TensorMap,
    const __grid_constant__ TensorMap, int, Uncounted::Sink);
template __global__ void pipelined_product<Counted, PipelineBug::none>(
    const __grid_constant__ TensorMap, const __grid_constant__ TensorMap,
    const __grid_constant__ TensorMap, int, Counted::Sink);

}  // namespace attest::simt
