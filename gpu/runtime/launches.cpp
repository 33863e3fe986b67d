// Launches, and what is asked of kernels before them.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "gpu/runtime/device.hpp"

using attest::InvalidProblem;
using attest::gpu::runtime::Capability;
using attest::gpu::runtime::Device;
using attest::gpu::runtime::Dim3;
using attest::gpu::runtime::Kernel;
using attest::gpu::runtime::Status;
using attest::gpu::runtime::Stream;

namespace {

struct Configuration {
  Dim3 grid, block;
  std::size_t shared_bytes;
  Stream stream;
};
thread_local std::vector<Configuration> configurations;  // of <<<...>>> whose stubs have not begun

Status launch(const void* host, const Configuration& configuration, void* const* arguments) {
  const auto [grid, block, shared_bytes, stream] = configuration;
  return Device::instance().call([&, grid = grid, block = block, bytes = shared_bytes,
                                  on = stream](Device& device) {
    return device.launch(
        device.kernel(host),
        {{grid.x, grid.y, grid.z}, {block.x, block.y, block.z}, static_cast<std::int64_t>(bytes)},
        arguments, on);
  });
}

// cudaLaunchConfig_t and cudaLaunchAttribute.
struct LaunchAttribute {
  int number;
  alignas(8) unsigned value[16];
};
struct LaunchConfig {
  Dim3 grid, block;
  std::size_t shared_bytes;
  Stream stream;
  const LaunchAttribute* attributes;
  unsigned attribute_count;
};
static_assert(sizeof(LaunchAttribute) == 72 && sizeof(LaunchConfig) == 56);

void require_plain(const LaunchConfig& config) {
  constexpr int kCooperative = 2, kClusterDimension = 4;
  for (unsigned k = 0; k < config.attribute_count; ++k) {
    const LaunchAttribute& each = config.attributes[k];
    const bool is_cluster = each.number == kClusterDimension &&
                            std::max({each.value[0], each.value[1], each.value[2]}) > 1;
    if (is_cluster) throw InvalidProblem("launches of clusters are not emulated");
    if (each.number == kCooperative && each.value[0] != 0) {
      throw InvalidProblem("cooperative launches are not emulated");
    }
  }
}

// cudaFuncAttributes.
struct FunctionAttributes {
  std::size_t shared_bytes, constant_bytes, local_bytes;
  int most_threads, registers, ptx_version, binary_version, cache_mode;
  int most_dynamic_shared_bytes, preferred_carveout;
  int others[23];
};
static_assert(sizeof(FunctionAttributes) == 144);

constexpr int kMostThreads = 1024, kThreadsOfProcessor = 2048, kBlocksOfProcessor = 32;

int blocks_of_processor(const Capability& capability, const Kernel& kernel, int threads,
                        std::size_t dynamic_shared_bytes) {
  constexpr std::size_t kReserved = 1 << 10;
  const auto all = static_cast<std::size_t>(capability.processor_shared_bytes);
  if (threads < 1 || threads > kMostThreads) return 0;
  const std::size_t shared = kernel.program().shared_bytes(dynamic_shared_bytes) + kReserved;
  return static_cast<int>(
      std::min({static_cast<std::size_t>(kBlocksOfProcessor),
                static_cast<std::size_t>(kThreadsOfProcessor / threads), all / shared}));
}

}  // namespace

extern "C" {

unsigned __cudaPushCallConfiguration(Dim3 grid, Dim3 block, std::size_t shared_bytes,
                                     Stream stream) {
  configurations.push_back({grid, block, shared_bytes, stream});
  return 0;
}

Status __cudaPopCallConfiguration(Dim3* grid, Dim3* block, std::size_t* shared_bytes,
                                  Stream* stream) {
  if (configurations.empty()) return Status::invalid_configuration;
  const Configuration last = configurations.back();
  configurations.pop_back();
  *grid = last.grid;
  *block = last.block;
  *shared_bytes = last.shared_bytes;
  *stream = last.stream;
  return Status::success;
}

Status __cudaGetKernel(const void** handle, const void* host) {
  return Device::instance().call([&](Device& device) {
    *handle = device.kernel(host);
    return *handle == nullptr ? Status::invalid_device_function : Status::success;
  });
}

Status cudaLaunchKernel(const void* host, Dim3 grid, Dim3 block, void** arguments,
                        std::size_t shared_bytes, Stream stream) {
  return launch(host, {grid, block, shared_bytes, stream}, arguments);
}

Status __cudaLaunchKernel(const void* kernel, Dim3 grid, Dim3 block, void** arguments,
                          std::size_t shared_bytes, Stream stream) {
  return launch(kernel, {grid, block, shared_bytes, stream}, arguments);
}

Status cudaLaunchKernelExC(const LaunchConfig* config, const void* host, void** arguments) {
  const Status plain = Device::instance().call([&](Device&) {
    require_plain(*config);
    return Status::success;
  });
  if (plain != Status::success) return plain;
  return launch(host, {config->grid, config->block, config->shared_bytes, config->stream},
                arguments);
}

Status cudaFuncSetAttribute(const void* host, int attribute, int value) {
  constexpr int kDynamicSharedBytes = 8;
  return Device::instance().call([&](Device& device) {
    Kernel* const kernel = device.kernel(host);
    if (kernel == nullptr) return Status::invalid_device_function;
    if (attribute != kDynamicSharedBytes) return Status::success;  // hints and clusters
    const auto fixed = static_cast<std::int64_t>(kernel->program().static_shared_bytes);
    if (value < 0 || value + fixed > device.capability().most_shared_bytes)
      return Status::invalid_value;
    kernel->dynamic_shared_bytes = value;
    return Status::success;
  });
}

Status cudaFuncSetCacheConfig(const void*, int) { return Status::success; }

Status cudaFuncGetAttributes(FunctionAttributes* attributes, const void* host) {
  return Device::instance().call([&](Device& device) {
    const Kernel* const kernel = device.kernel(host);
    if (kernel == nullptr) return Status::invalid_device_function;
    const attest::ptx::Program& program = kernel->program();
    *attributes = {};
    attributes->shared_bytes = program.static_shared_bytes;
    attributes->local_bytes = program.local_bytes;
    attributes->most_threads = kMostThreads;
    attributes->ptx_version = static_cast<int>(kernel->module->architecture());
    attributes->binary_version = static_cast<int>(device.capability().architecture);
    attributes->most_dynamic_shared_bytes = static_cast<int>(
        std::max(kernel->dynamic_shared_bytes,
                 Device::kSharedBytes - static_cast<std::int64_t>(program.static_shared_bytes)));
    return Status::success;
  });
}

Status cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* host,
                                                              int threads, std::size_t bytes,
                                                              unsigned) {
  return Device::instance().call([&](Device& device) {
    const Kernel* const kernel = device.kernel(host);
    if (kernel == nullptr) return Status::invalid_device_function;
    *blocks = blocks_of_processor(device.capability(), *kernel, threads, bytes);
    return Status::success;
  });
}

Status cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* host, int threads,
                                                     std::size_t bytes) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, host, threads, bytes, 0);
}

}  // extern "C"
