#include <cuda_bf16.h>
#include <mma.h>

#include "gpu/device/buffer.hpp"
#include "gpu/device/kernels/launch.cuh"
#include "gpu/device/measure/events.cuh"
#include "gpu/device/measure/rates.hpp"

namespace attest::gpu::cuda {
namespace {

constexpr int kRepetitions = 5, kThreads = 256, kBlocksPerProcessor = 8;

struct Loop {
  float* out;
  int rounds;
};

constexpr int kChains = 8;

// Independent chains hide each other's latency.
__global__ void multiply_and_add(Loop a) {
  float sums[kChains];
  const auto start = static_cast<float>(threadIdx.x);
  for (int c = 0; c < kChains; ++c) sums[c] = start + static_cast<float>(c);
  for (int round = 0; round < a.rounds; ++round) {
    for (int c = 0; c < kChains; ++c) sums[c] = fmaf(sums[c], 0.5F, 1.0F);
  }
  float sum = 0;
  for (int c = 0; c < kChains; ++c) sum += sums[c];
  if (sum == -1) *a.out = sum;  // never, but the compiler does not know
}

constexpr int kTile = 16;

__global__ void multiply_matrices(Loop a) {
  using namespace nvcuda::wmma;
  fragment<matrix_a, kTile, kTile, kTile, __nv_bfloat16, row_major> A;
  fragment<matrix_b, kTile, kTile, kTile, __nv_bfloat16, col_major> B;
  fragment<accumulator, kTile, kTile, kTile, float> sums[kChains];
  fill_fragment(A, __float2bfloat16(static_cast<float>(a.rounds)));
  fill_fragment(B, __float2bfloat16(0.5F));
  for (int c = 0; c < kChains; ++c) fill_fragment(sums[c], static_cast<float>(c));
  for (int round = 0; round < a.rounds; ++round) {
    for (int c = 0; c < kChains; ++c) mma_sync(sums[c], A, B, sums[c]);
  }
  float sum = 0;
  for (int c = 0; c < kChains; ++c) {
    for (const float element : sums[c].x) sum += element;  // of all: what is not read is not made
  }
  if (sum == -1) *a.out = sum;
}

double operations_per_second(void (*kernel)(Loop), double operations_of_a_thread_round) {
  constexpr int kRounds = 1 << 14;
  int processors = 0;
  require(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0), "processors");
  const Buffer out("out", sizeof(float));
  const BlockLine shape{std::int64_t{processors} * kBlocksPerProcessor, kThreads, 0};
  const auto runs = seconds_of_runs(kRepetitions, nullptr, [&] {
    launch("rate", kernel, shape, nullptr, Loop{static_cast<float*>(out.data()), kRounds});
  });
  return operations_of_a_thread_round * kRounds * kThreads * static_cast<double>(shape.blocks) /
         runs.front();
}

}  // namespace

double copy_bytes_per_second() {
  constexpr std::size_t kBytes = std::size_t{1} << 30;
  const Buffer from("from", kBytes), to("to", kBytes);
  const auto runs = seconds_of_runs(kRepetitions, nullptr, [&] {
    require(cudaMemcpyAsync(to.data(), from.data(), kBytes, cudaMemcpyDeviceToDevice, nullptr),
            "copy");
  });
  return 2 * static_cast<double>(kBytes) / runs.front();
}

double float_operations_per_second() {
  return operations_per_second(multiply_and_add, 2 * kChains);
}

double matrix_operations_per_second() {
  constexpr double kOfAWarp = 2.0 * kTile * kTile * kTile * kChains;
  return operations_per_second(multiply_matrices, kOfAWarp / 32);
}

}  // namespace attest::gpu::cuda
