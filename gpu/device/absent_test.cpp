#include "core/error.hpp"
#include "core/testing/catch.hpp"
#include "gpu/device/device_kernels.hpp"
#include "gpu/device/probe.hpp"
#include "gpu/kernels/emulated/emulated_kernel.hpp"
#include "gpu/register.hpp"

namespace attest::gpu::cuda {
namespace {

TEST_CASE("the device has a name or a reason why there is none", "[gpu][device]") {
  CHECK(device().present() != device().name.empty());
  CHECK(device().present() == device().absent_because.empty());
}

TEST_CASE("without a device, what needs one is refused and says so", "[gpu][device]") {
  Registry registry;
  register_gpu(registry);
  CHECK(registry.find("gpu/flash2").description.device == ATTEST_CPU);
  if (device().present()) {
    const attest_description& d = registry.find("gpu/flash2@device").description;
    CHECK(d.device == ATTEST_CUDA);
    CHECK(std::string(d.summary).find("on device " + device().name) == 0);
    return;
  }
  for (const EmulatedKernel* kernel : emulated_kernels()) {
    const std::string name = std::string(kernel->description().name) + "@device";
    CHECK_THROWS_WITH(registry.find(name),
                      Catch::Contains("kernel '" + name + "' needs a CUDA device") &&
                          Catch::Contains(device().absent_because));
  }
  CHECK(registry.names().size() == registry.kernels().size());  // it is not listed
  CHECK_THROWS_AS(on_host_tensors(registry.find("gpu/flash2")), InvalidProblem);
}

}  // namespace
}  // namespace attest::gpu::cuda
