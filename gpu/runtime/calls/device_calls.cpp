// Which device there is, and its errors.
#include <algorithm>
#include <iterator>

#include "gpu/runtime/device.hpp"
#include "gpu/runtime/runtime_major.hpp"

using attest::gpu::runtime::Device;
using attest::gpu::runtime::Status;

namespace {

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

Status cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = *greatest = 0;
  return Status::success;
}

Status cudaRuntimeGetVersion(int* version) {
  constexpr int kOfMajor = 1000;
  *version = attest::gpu::runtime::runtime_major() * kOfMajor;
  return Status::success;
}
Status cudaDriverGetVersion(int* version) { return cudaRuntimeGetVersion(version); }

Status cudaGetLastError() { return Device::instance().take_error(); }
Status cudaPeekAtLastError() { return Device::instance().last_error(); }
const char* cudaGetErrorName(Status status) { return error_of(status).name; }
const char* cudaGetErrorString(Status status) { return error_of(status).text; }

}  // extern "C"
