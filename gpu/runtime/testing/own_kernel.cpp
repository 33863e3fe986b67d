// A kernel of gpu/kernels on its device side as a library of its own, which nvcc compiles.
#include <string>

#include "core/error.hpp"
#include "gpu/device/kernels.hpp"
#include "gpu/kernels/emulated/emulated_kernel.hpp"

namespace {

using namespace attest::gpu;

attest_status forward(const void*, const attest_forward_args* args) {
  return cuda::flash2_tensor_core_forward(*args, nullptr);
}

attest_kernel own_kernel() {
  attest_kernel kernel{};
  for (const EmulatedKernel* each : emulated_kernels()) {
    if (std::string(each->description().name) != "gpu/flash2_tensor_core") continue;
    kernel.struct_size = sizeof kernel;
    kernel.abi_version = ATTEST_ABI_VERSION;
    kernel.description = each->description();
    kernel.description.name = "own/flash2_tensor_core";
    kernel.description.device = ATTEST_CUDA;
    kernel.description.directions = ATTEST_FORWARD;
    kernel.description.schedule_backward = nullptr;
    kernel.forward = forward;
    return kernel;
  }
  throw attest::InternalError("no gpu/flash2_tensor_core");
}

}  // namespace

extern "C" const attest_kernel* attest_get_kernel(uint32_t index) {
  static const attest_kernel kernel = own_kernel();
  return index == 0 ? &kernel : nullptr;
}
