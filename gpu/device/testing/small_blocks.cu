#include <array>
#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "gpu/device/buffer.hpp"
#include "gpu/device/kernels/launch.cuh"
#include "gpu/device/testing/small_blocks.hpp"
#include "gpu/simt/memory/traffic.hpp"

namespace attest::gpu::cuda {
namespace {

using simt::Counted;

struct ReadOnce {
  Counted::In<float> from;
  Counted::Out<float> to;
  Counted::Sink sink;
};

__global__ void read_once(ReadOnce a) {
  Counted mem(a.sink);
  const std::int64_t i = blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x;
  const float value = mem.load(a.from, i);
  if (threadIdx.x == 0) mem.store(a.to, blockIdx.x, value);
  mem.flush();
}

__global__ void with_static_memory(float* out) {
  ATTEST_SHARED(float, fixed, [4]);
  ATTEST_DYNAMIC_SHARED(float, words);
  fixed[threadIdx.x] = words[threadIdx.x] = static_cast<float>(threadIdx.x);
  __syncthreads();
  *out = fixed[3] + words[2];
}

BlockLine shape_with(std::int64_t dynamic_bytes) { return {1, 4, dynamic_bytes}; }

void launch_as_all(std::int64_t dynamic_bytes, float* out) {
  launch("with_static_memory", with_static_memory, shape_with(dynamic_bytes), nullptr, out);
}

// Asks for what this launch needs, which is of the kernel: another thread may ask for less before
// the launch.
void launch_asking_for_its_own(std::int64_t dynamic_bytes, float* out) {
  require(cudaFuncSetAttribute(reinterpret_cast<const void*>(with_static_memory),
                               cudaFuncAttributeMaxDynamicSharedMemorySize,
                               static_cast<int>(dynamic_bytes)),
          "shared memory");
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(1);
  config.blockDim = dim3(4);
  config.dynamicSmemBytes = static_cast<std::size_t>(dynamic_bytes);
  require(cudaLaunchKernelEx(&config, with_static_memory, out), "launch");
}

}  // namespace

CountedBytes bytes_counted_by(int blocks, int threads) {
  const auto count = static_cast<std::size_t>(blocks) * static_cast<std::size_t>(threads);
  const Buffer from("from", count * sizeof(float)),
      to("to", static_cast<std::size_t>(blocks) * sizeof(float));
  std::array<unsigned long long, 2> bytes{};
  const Buffer sink("sink", sizeof bytes);
  sink.upload(bytes.data());
  launch("read_once", read_once, {blocks, threads, 0}, nullptr,
         ReadOnce{static_cast<const float*>(from.data()),
                  static_cast<float*>(to.data()),
                  {static_cast<unsigned long long*>(sink.data())}});
  std::memcpy(bytes.data(), sink.download().data(), sizeof bytes);
  return {bytes[0], bytes[1]};
}

std::int64_t shared_bytes_limit() {
  int limit = 0;
  require(cudaDeviceGetAttribute(&limit, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0), "limit");
  return limit;
}

bool fits_beside_static(std::int64_t dynamic_bytes) {
  return fits(with_static_memory, shape_with(dynamic_bytes));
}

bool launches_beside_static(std::int64_t dynamic_bytes) {
  const Buffer out("out", sizeof(float));
  try {
    launch_asking_for_its_own(dynamic_bytes, static_cast<float*>(out.data()));
    require(cudaDeviceSynchronize(), "with_static_memory");
  } catch (const DeviceError&) {
    return false;
  }
  return true;
}

int refused_among_threads(Asking asking) {
  constexpr int kThreads = 4, kLaunches = 500;
  constexpr std::int64_t kSmall = 64, kBesideStatic = 2048;
  const std::int64_t large = shared_bytes_limit() - kBesideStatic;
  const Buffer out("out", sizeof(float));
  std::atomic<int> refused = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, bytes = t % 2 == 0 ? kSmall : large] {
      for (int k = 0; k < kLaunches; ++k) {
        try {
          (asking == Asking::as_all ? launch_as_all : launch_asking_for_its_own)(
              bytes, static_cast<float*>(out.data()));
        } catch (const DeviceError&) {
          ++refused;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  require(cudaDeviceSynchronize(), "launches of many threads");
  return refused;
}

void clear_byte(void* at) { require(cudaMemset(at, 0, 1), "clear a byte"); }

}  // namespace attest::gpu::cuda
