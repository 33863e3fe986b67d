#include "core/testing/catch.hpp"
#include "gpu/kernels/flash2/flash2.hpp"
#include "gpu/kernels/kernels.hpp"
#include "gpu/kernels/key_stationary/key_stationary.hpp"
#include "gpu/kernels/square_tiled/square_tiled.hpp"
#include "gpu/testing/broken_tensor_core.hpp"
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
    const EmulatedBackward backward(call.backward_arguments(key_stationary_kernel().abi()));
    key_stationary_prepare_emulated(backward, {});
    const simt::LaunchReport report = testing::key_stationary_without_barriers(backward, emulation);
    CHECK_FALSE(report.diagnoses.empty());
  }
}

TEST_CASE("a walk over lists that forgets its barriers is found out in every order",
          "[gpu][block_flash2]") {
  for (const simt::Emulation& emulation : testing::checked_orders()) {
    const testing::Call call("sq=32,sk=64,d=8,mask=block_16_100_1", ATTEST_BLOCK_MASK);
    const EmulatedForward forward(call.forward_arguments());
    CHECK_FALSE(testing::listed_walk_without_barriers(forward, emulation).diagnoses.empty());
  }
}

TEST_CASE("a product whose panels have no barriers is found out in every order", "[gpu][loss]") {
  for (const simt::Emulation& emulation : testing::checked_orders()) {
    CHECK_FALSE(testing::square_product_without_barriers(emulation).diagnoses.empty());
  }
}

TEST_CASE("a kernel that uses a tile before it has arrived is found out in every order",
          "[gpu][tensor_core]") {
  using testing::TensorCoreBug;
  for (const simt::Emulation& emulation : testing::checked_orders()) {
    const auto diagnoses = [&](TensorCoreBug bug) {
      testing::Call call("sq=33,sk=100,d=8,dtype=f16");
      EmulatedForward forward(call.forward_arguments());
      return flash2_tensor_core_with(bug, forward, emulation).to_string();
    };
    CHECK(diagnoses(TensorCoreBug::none).empty());
    using Catch::Contains;
    CHECK_THAT(diagnoses(TensorCoreBug::waits_for_too_few), Contains("has not yet waited"));
    CHECK_THAT(diagnoses(TensorCoreBug::no_barrier), Contains("nothing orders the two"));
    CHECK_THAT(diagnoses(TensorCoreBug::copies_over_readers), Contains("has not yet waited"));
  }
}

TEST_CASE("a backward that uses a tile before it has arrived is found out in every order",
          "[gpu][tensor_core]") {
  using testing::TensorCoreBug;
  for (const simt::Emulation& emulation : testing::checked_orders()) {
    const auto diagnoses = [&](TensorCoreBug bug) {
      testing::Call call("sq=100,sk=100,d=8,dtype=f16");
      EmulatedForward forward(call.forward_arguments());
      flash2_tensor_core_with(TensorCoreBug::none, forward, {});
      EmulatedBackward backward(call.backward_arguments(flash2_tensor_core_kernel().abi()));
      return two_pass_tensor_core_with(bug, backward, emulation).to_string();
    };
    CHECK(diagnoses(TensorCoreBug::none).empty());
    using Catch::Contains;
    CHECK_THAT(diagnoses(TensorCoreBug::waits_for_too_few), Contains("has not yet waited"));
    CHECK_THAT(diagnoses(TensorCoreBug::no_barrier), Contains("nothing orders the two"));
    CHECK_THAT(diagnoses(TensorCoreBug::copies_over_readers), Contains("has not yet waited"));
  }
}

TEST_CASE("sums that go through shared memory without a barrier are found out in every order",
          "[gpu][tensor_core]") {
  using Catch::Contains;
  for (const simt::Emulation& emulation : testing::checked_orders()) {
    testing::Call call("sq=40,sk=70,d=8,dtype=f16");
    EmulatedForward forward(call.forward_arguments(square_tiled_tensor_core_kernel().abi()));
    CHECK_THAT(testing::square_tiled_without_barrier(forward, emulation).to_string(),
               Contains("nothing orders the two"));
    const auto diagnoses = [&](testing::TensorCoreBug bug) {
      EmulatedBackward backward(call.backward_arguments(key_stationary_tensor_core_kernel().abi()));
      return key_stationary_tensor_core_with(bug, backward, emulation).to_string();
    };
    CHECK(diagnoses(testing::TensorCoreBug::none).empty());
    CHECK_THAT(diagnoses(testing::TensorCoreBug::reads_dS_early),
               Contains("nothing orders the two"));
  }
}

}  // namespace
}  // namespace attest::gpu
