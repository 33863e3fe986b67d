#include "gpu/device/device_side.hpp"

#include "core/error.hpp"
#include "core/testing/catch.hpp"
#include "gpu/kernels/flash2.hpp"

namespace attest::gpu::cuda {
namespace {

TEST_CASE("every emulated kernel has its device side, with the same directions",
          "[gpu][resources]") {
  for (const EmulatedKernel* kernel : emulated_kernels()) {
    INFO(kernel->description().name);
    const DeviceSide side(*kernel);
    const attest_kernel &abi = side.abi(), &emulated = kernel->abi();
    CHECK(abi.description.name == std::string(emulated.description.name) + "@device");
    CHECK(abi.description.device == ATTEST_CUDA);
    CHECK((abi.forward != nullptr) == (emulated.forward != nullptr));
    CHECK((abi.backward != nullptr) == (emulated.backward != nullptr));
    CHECK((abi.loss_gradient != nullptr) == (emulated.loss_gradient != nullptr));
  }
}

TEST_CASE("a kernel without a device side is said to have none", "[gpu][resources]") {
  CHECK_THROWS_AS(DeviceSide(flash2_held_kernel<16>()), InternalError);
}

}  // namespace
}  // namespace attest::gpu::cuda
