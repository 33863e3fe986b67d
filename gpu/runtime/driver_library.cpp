// libcuda.so.1, for libraries that are linked with the driver: its functions are those that the
// runtime library hands out.
#include <cstdint>
#include <cstring>

#include "gpu/runtime/cuda_types.hpp"

using attest::gpu::runtime::Status;

extern "C" {

Status cudaGetDriverEntryPointByVersion(const char*, void**, unsigned, std::uint64_t, int*);

Status cuTensorMapEncodeTiled(void* map, int type, std::uint32_t rank, void* data,
                              const std::uint64_t* extents, const std::uint64_t* strides,
                              const std::uint32_t* box, const std::uint32_t* steps, int interleave,
                              int swizzle, int promotion, int fill) {
  void* function = nullptr;
  cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 0, 0, nullptr);
  decltype(&cuTensorMapEncodeTiled) encode = nullptr;
  std::memcpy(&encode, &function, sizeof encode);
  return encode(map, type, rank, data, extents, strides, box, steps, interleave, swizzle, promotion,
                fill);
}

}  // extern "C"
