#include "gpu/device/device_side.hpp"

#include <string>
#include <string_view>
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

// Tells whether a run on a device sees in the name which problem the kernel takes (ci/on_device).
bool name_tells_loss(const attest_description& kernel) {
  const bool takes_loss = (kernel.directions & ATTEST_LOSS_GRADIENT) != 0;
  return (std::string_view(kernel.name).find("loss") != std::string_view::npos) == takes_loss;
}

TEST_CASE("kernels of the loss are called so", "[gpu][resources]") {
  for (const EmulatedKernel* kernel : emulated_kernels()) {
    INFO(kernel->description().name);
    CHECK(name_tells_loss(kernel->description()));
  }
  attest_description other = flash2_kernel().description();
  other.name = "gpu/loss_less";
  CHECK_FALSE(name_tells_loss(other));
}

// Tells whether the summary begins with the words that the device's side leaves out.
bool says_where(const attest_description& kernel) {
  return std::string_view(kernel.summary).rfind("CUDA, emulated on the host: ", 0) == 0;
}

TEST_CASE("each summary says where its kernel runs", "[gpu][resources]") {
  for (const EmulatedKernel* kernel : emulated_kernels()) {
    INFO(kernel->description().name);
    CHECK(says_where(kernel->description()));
    CHECK(std::string_view(DeviceSide(*kernel).abi().description.summary).find("CUDA") ==
          std::string_view::npos);
  }
  attest_description other = flash2_kernel().description();
  other.summary = "online softmax";
  CHECK_FALSE(says_where(other));
}

}  // namespace
}  // namespace attest::gpu::cuda
