#include "gpu/device/device_side.hpp"

#include <vector>

#include "core/error.hpp"
#include "core/testing/catch.hpp"
#include "gpu/kernels/emulated/families.hpp"
#include "gpu/kernels/flash2/flash2.hpp"

namespace attest::gpu::cuda {
namespace {

TEST_CASE("every emulated kernel has its device side, with the same directions",
          "[gpu][resources]") {
  std::vector<const EmulatedKernel*> all = emulated_kernels();
  for (const Family& family : families()) {
    for (const Variant& variant : family.variants) all.push_back(variant.kernel);
  }
  for (const EmulatedKernel* kernel : all) {
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
  const EmulatedKernel other(flash2_kernel().description(), flash2_kernel().directions());
  CHECK_THROWS_AS(DeviceSide(other), InternalError);
}

}  // namespace
}  // namespace attest::gpu::cuda
