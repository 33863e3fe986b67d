// The device and its errors. Extents are those of the CUDA programming guide for compute
// capability 8.0, numbers of processors an A100's.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <string>

#include "gpu/runtime/device.hpp"

using attest::InvalidProblem;
using attest::gpu::runtime::Device;
using attest::gpu::runtime::Status;

namespace {

struct Attribute {
  int number, value;  // cudaDeviceAttr
};
constexpr Attribute kAttributes[] = {
    {1, 1024},                         // threads of a block
    {2, 1024},                         // in x
    {3, 1024},                         // in y
    {4, 64},                           // in z
    {5, 0x7FFFFFFF},                   // blocks of a grid in x
    {6, 65535},                        // in y
    {7, 65535},                        // in z
    {8, 48 << 10},                     // shared memory of a block
    {9, 64 << 10},                     // constant memory
    {10, 32},                          // threads of a warp
    {12, 65536},                       // registers of a block
    {16, 108},                         // multiprocessors
    {31, 1},                           // concurrent kernels
    {38, 40 << 20},                    // L2
    {39, 2048},                        // threads of a multiprocessor
    {41, 1},                           // unified addresses
    {75, 8},                           // compute capability
    {76, 0},         {81, 164 << 10},  // shared memory of a multiprocessor
    {82, 65536},                       // registers of one
    {83, 0},                           // managed memory
    {95, 0},                           // cooperative launches
    {97, 163 << 10},                   // shared memory that a block may ask for
    {106, 32},                         // blocks of a multiprocessor
    {111, 1 << 10},                    // shared memory that the system takes of each block
    {115, 1},                          // cudaMallocAsync
};

struct Error {
  Status status;
  const char *name, *text;
};
constexpr Error kErrors[] = {
    {Status::success, "cudaSuccess", "no error"},
    {Status::invalid_value, "cudaErrorInvalidValue", "invalid argument"},
    {Status::memory_allocation, "cudaErrorMemoryAllocation", "out of memory"},
    {Status::invalid_configuration, "cudaErrorInvalidConfiguration",
     "invalid configuration argument"},
    {Status::invalid_symbol, "cudaErrorInvalidSymbol", "invalid device symbol"},
    {Status::invalid_device_function, "cudaErrorInvalidDeviceFunction", "invalid device function"},
    {Status::invalid_device, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {Status::invalid_handle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {Status::launch_failure, "cudaErrorLaunchFailure", "the emulated kernel went wrong"},
    {Status::not_supported, "cudaErrorNotSupported", "operation is not emulated"},
};

// Fields of cudaDeviceProp as CUDA 13 has it, by their bytes.
struct Property {
  std::size_t at;
  std::int64_t value;
  std::size_t bytes = sizeof(int);
};
constexpr std::size_t kPropertiesBytes = 1008;
constexpr Property kProperties[] = {
    {288, std::int64_t{40} << 30, 8},  // totalGlobalMem
    {296, 48 << 10, 8},                // sharedMemPerBlock
    {304, 65536},                      // regsPerBlock
    {308, 32},                         // warpSize
    {320, 1024},                       // maxThreadsPerBlock
    {324, 1024},                       // maxThreadsDim
    {328, 1024},
    {332, 64},
    {336, 0x7FFFFFFF},  // maxGridSize
    {340, 65535},
    {344, 65535},
    {352, 64 << 10, 8},   // totalConstMem
    {360, 8},             // major
    {384, 108},           // multiProcessorCount
    {560, 1},             // concurrentKernels
    {596, 40 << 20},      // l2CacheSize
    {604, 2048},          // maxThreadsPerMultiProcessor
    {624, 164 << 10, 8},  // sharedMemPerMultiprocessor
    {632, 65536},         // regsPerMultiprocessor
    {672, 163 << 10, 8},  // sharedMemPerBlockOptin
    {688, 32},            // maxBlocksPerMultiProcessor
    {696, 1 << 10, 8},    // reservedSharedMemPerBlock
};

const Error& error_of(Status status) {
  static constexpr Error kOther{Status::not_supported, "unrecognized error code",
                                "unrecognized error code"};
  const auto* const known = std::find_if(std::begin(kErrors), std::end(kErrors),
                                         [&](const Error& each) { return each.status == status; });
  return known == std::end(kErrors) ? kOther : *known;
}

}  // namespace

extern "C" {

Status cudaGetDeviceCount(int* count) {
  *count = 1;
  return Status::success;
}
Status cudaGetDevice(int* device) {
  *device = 0;
  return Status::success;
}
Status cudaSetDevice(int device) { return device == 0 ? Status::success : Status::invalid_device; }

Status cudaDeviceGetAttribute(int* value, int number, int device) {
  if (device != 0) return Status::invalid_device;
  return Device::instance().call([&](Device&) {
    const auto* const known =
        std::find_if(std::begin(kAttributes), std::end(kAttributes),
                     [&](const Attribute& each) { return each.number == number; });
    if (known == std::end(kAttributes)) {
      throw InvalidProblem("cudaDeviceGetAttribute: attribute " + std::to_string(number) +
                           " is not known of the emulated device");
    }
    *value = known->value;
    return Status::success;
  });
}

Status cudaGetDeviceProperties(std::byte* properties, int device) {
  if (device != 0) return Status::invalid_device;
  constexpr char kName[] = "emulated sm_80";
  std::memset(properties, 0, kPropertiesBytes);
  std::memcpy(properties, kName, sizeof kName);
  for (const Property& each : kProperties) {
    std::memcpy(properties + each.at, &each.value, each.bytes);
  }
  return Status::success;
}

Status cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = *greatest = 0;
  return Status::success;
}

Status cudaRuntimeGetVersion(int* version) {
  constexpr int kVersion = 13000;
  *version = kVersion;
  return Status::success;
}
Status cudaDriverGetVersion(int* version) { return cudaRuntimeGetVersion(version); }

Status cudaGetLastError() { return Device::instance().take_error(); }
Status cudaPeekAtLastError() { return Device::instance().last_error(); }
const char* cudaGetErrorName(Status status) { return error_of(status).name; }
const char* cudaGetErrorString(Status status) { return error_of(status).text; }

}  // extern "C"
