#include <cuda_runtime.h>

#include <array>

#include "gpu/device/testing/misbehaving.hpp"
#include "gpu/kernels/tiles/tensor.hpp"

namespace attest::gpu::cuda {
namespace {

constexpr std::size_t kWorkspaceBytes = 16;

struct Pointers {
  float *Q, *O;
  char* workspace;
  std::int64_t count;
};

__global__ void double_values(Pointers p, Mistake mistake) {
  const std::int64_t i = blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x;
  if (i < p.count) p.O[i] = 2 * p.Q[i];
  if (i != 0) return;
  if (mistake == Mistake::writes_behind) p.O[p.count] = 1;
  if (mistake == Mistake::writes_before) p.O[-1] = 1;
  if (mistake == Mistake::writes_input) p.Q[0] = 1 + p.Q[0];
  if (mistake == Mistake::uses_workspace) p.workspace[kWorkspaceBytes] = 0;
  if (mistake == Mistake::stray_pointer) *reinterpret_cast<float*>(std::uintptr_t{64}) = 1;
}

attest_status forward(const void* self, const attest_forward_args* args) {
  const Mistake mistake = *static_cast<const Mistake*>(self);
  const Pointers pointers{elements<float>(args->Q), elements<float>(args->O),
                          static_cast<char*>(args->workspace), span_of(*args->O)};
  const unsigned threads = mistake == Mistake::refused_launch ? 2048 : 128;
  const auto blocks = static_cast<unsigned>((pointers.count + threads - 1) / threads);
  cudaStream_t stream = static_cast<cudaStream_t>(args->stream);
  if (mistake == Mistake::ignores_stream) {
    static cudaStream_t own = [] {
      cudaStream_t created = nullptr;
      cudaStreamCreateWithFlags(&created, cudaStreamNonBlocking);
      return created;
    }();
    stream = own;
  }
  double_values<<<blocks, threads, 0, stream>>>(pointers, mistake);
  return ATTEST_OK;
}

std::size_t workspace_bytes(const void*, const attest_problem*, std::uint32_t) {
  return kWorkspaceBytes;
}

}  // namespace

const attest_kernel& doubling_kernel(Mistake mistake) {
  constexpr std::size_t kMistakes = 8;
  static std::array<Mistake, kMistakes> selves;
  static std::array<attest_kernel, kMistakes> kernels;
  const auto index = static_cast<std::size_t>(mistake);
  selves[index] = mistake;
  attest_kernel& kernel = kernels[index] = {};
  kernel.struct_size = sizeof kernel;
  kernel.abi_version = ATTEST_ABI_VERSION;
  kernel.description.struct_size = sizeof kernel.description;
  kernel.description.numerics.struct_size = sizeof kernel.description.numerics;
  kernel.description.name = "test/doubling";
  kernel.description.summary = "O = 2 Q";
  kernel.description.device = ATTEST_CUDA;
  kernel.description.directions = ATTEST_FORWARD;
  kernel.description.dtypes = 1U << ATTEST_F32;
  kernel.self = &selves[index];
  kernel.workspace_bytes = workspace_bytes;
  kernel.forward = forward;
  return kernel;
}

}  // namespace attest::gpu::cuda
