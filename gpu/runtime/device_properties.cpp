// Properties of the device.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>

#include "gpu/runtime/device.hpp"
#include "gpu/runtime/runtime_major.hpp"

using attest::InvalidProblem;
using attest::gpu::runtime::Capability;
using attest::gpu::runtime::Device;
using attest::gpu::runtime::runtime_major;
using attest::gpu::runtime::Status;

namespace {

// A number of cudaDeviceAttr, and its fields' bytes in cudaDeviceProp as CUDA 13 and 12 have it; 0
// where one has none.
struct Property {
  int attribute;
  std::size_t at_13, at_12;
  std::int64_t value;
  std::size_t bytes = sizeof(int);
};

std::vector<Property> properties_of(const Capability& device) {
  constexpr std::int64_t kThreads = 1024, kRegisters = 65536, kLeast16 = 65535;
  return {
      {0, 288, 288, std::int64_t{40} << 30, 8},  // global memory
      {1, 320, 320, kThreads},                   // threads of a block
      {2, 324, 324, kThreads},                   // in x
      {3, 328, 328, kThreads},                   // in y
      {4, 332, 332, 64},                         // in z
      {5, 336, 336, 0x7FFFFFFF},                 // blocks of a grid in x
      {6, 340, 340, kLeast16},                   // in y
      {7, 344, 344, kLeast16},                   // in z
      {8, 296, 296, Device::kSharedBytes, 8},    // shared memory of a block
      {9, 352, 352, 64 << 10, 8},                // constant memory
      {10, 308, 308, 32},                        // threads of a warp
      {12, 304, 304, kRegisters},                // registers of a block
      {16, 384, 388, device.processors},
      {31, 560, 576, 1},  // concurrent kernels
      {38, 596, 616, device.l2_bytes},
      {39, 604, 624, 2048},  // threads of a multiprocessor
      {41, 588, 604, 1},     // unified addresses
      {75, 360, 360, device.major()},
      {76, 364, 364, device.minor()},
      {81, 624, 640, device.processor_shared_bytes, 8},
      {82, 632, 648, kRegisters},  // registers of a multiprocessor
      {83, 636, 652, 0},           // managed memory
      {95, 668, 688, 0},           // cooperative launches
      {97, 672, 696, device.most_shared_bytes, 8},
      {106, 688, 712, 32},          // blocks of a multiprocessor
      {111, 696, 720, 1 << 10, 8},  // shared memory that the system takes of each block
      {115, 720, 744, 1},           // cudaMallocAsync
      {120, 748, 772, 0},           // launches of clusters
  };
}

Status properties(std::byte* to, int number) {
  if (number != 0) return Status::invalid_device;
  return Device::instance().call([&](Device& device) {
    const bool is_13 = runtime_major() == 13;
    const std::size_t all = is_13 ? 1008 : 1032;
    const std::string name = std::string("emulated ") + device.capability().name;
    std::memset(to, 0, all);
    std::memcpy(to, name.data(), name.size());
    for (const Property& each : properties_of(device.capability())) {
      std::memcpy(to + (is_13 ? each.at_13 : each.at_12), &each.value, each.bytes);
    }
    return Status::success;
  });
}

}  // namespace

extern "C" {

Status cudaDeviceGetAttribute(int* value, int number, int device_number) {
  if (device_number != 0) return Status::invalid_device;
  return Device::instance().call([&](Device& device) {
    const std::vector<Property> all = properties_of(device.capability());
    const auto known = std::find_if(all.begin(), all.end(), [&](const Property& each) {
      return each.attribute == number && number != 0;
    });
    if (known == all.end()) {
      throw InvalidProblem("cudaDeviceGetAttribute: attribute " + std::to_string(number) +
                           " is not known of the emulated device");
    }
    *value = static_cast<int>(known->value);
    return Status::success;
  });
}

// The struct of CUDA 13 has the older name, that of 12 the newer one.
Status cudaGetDeviceProperties(std::byte* to, int number) { return properties(to, number); }
Status cudaGetDeviceProperties_v2(std::byte* to, int number) { return properties(to, number); }

}  // extern "C"
