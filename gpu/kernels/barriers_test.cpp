#include "core/testing/catch.hpp"
#include "gpu/kernels/flash2.hpp"
#include "gpu/kernels/key_stationary.hpp"
#include "gpu/testing/call.hpp"
#include "gpu/testing/forgotten_barriers.hpp"

namespace attest::gpu {
namespace {

TEST_CASE("a backward kernel that forgets its barriers is found out in every order",
          "[gpu][key_stationary]") {
  for (const simt::Emulation& emulation : testing::checked_orders()) {
    testing::Call call("sq=40,d=8");
    const EmulatedForward forward(call.forward_arguments());
    flash2_forward_emulated(forward, {});
    const EmulatedBackward backward(call.backward_arguments());
    key_stationary_prepare_emulated(backward, {});
    const simt::LaunchReport report = testing::key_stationary_without_barriers(backward, emulation);
    CHECK_FALSE(report.diagnoses.empty());
  }
}

TEST_CASE("a product whose panels have no barriers is found out in every order", "[gpu][loss]") {
  for (const simt::Emulation& emulation : testing::checked_orders()) {
    CHECK_FALSE(testing::square_product_without_barriers(emulation).diagnoses.empty());
  }
}

}  // namespace
}  // namespace attest::gpu
