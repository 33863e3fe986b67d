#include <array>

#include "core/testing/catch.hpp"
#include "gpu/device/kernels/require.cuh"
#include "gpu/device/staging.hpp"

namespace attest::gpu::cuda {
namespace {

TEST_CASE("errors carry CUDA's name and what was asked for", "[gpu][cuda]") {
  CHECK_NOTHROW(require(cudaSuccess, "nothing"));
  CHECK_THROWS_WITH(require(cudaErrorInvalidValue, "flash2: shared memory"),
                    "flash2: shared memory: cudaErrorInvalidValue (invalid argument)");
  CHECK_THROWS_AS(require(cudaErrorNoDevice, "x"), DeviceError);
}

TEST_CASE("strides that span more than a device should copy are seen before anything is copied",
          "[gpu][cuda]") {
  std::array<std::int64_t, 4> shape{1, 2, 1, 1}, strides{0, std::int64_t{1} << 32, 0, 1};
  float element = 0;
  const attest_tensor tensor{&element,     {ATTEST_CPU, 0}, 4, {2, 32, 1},
                             shape.data(), strides.data(),  0};
  Staging staging;
  CHECK(staging.tensor("O", nullptr, Staging::Use::output) == nullptr);
  CHECK_FALSE(staging.too_large());
  staging.tensor("Q", &tensor, Staging::Use::input);
  CHECK(staging.too_large());
}

}  // namespace
}  // namespace attest::gpu::cuda
