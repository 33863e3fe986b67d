#include "core/testing/catch.hpp"
#include "gpu/device/require.cuh"

namespace attest::gpu::cuda {
namespace {

TEST_CASE("errors carry CUDA's name and what was asked for", "[gpu][cuda]") {
  CHECK_NOTHROW(require(cudaSuccess, "nothing"));
  CHECK_THROWS_WITH(require(cudaErrorInvalidValue, "flash2: shared memory"),
                    "flash2: shared memory: cudaErrorInvalidValue (invalid argument)");
  CHECK_THROWS_AS(require(cudaErrorNoDevice, "x"), DeviceError);
}

}  // namespace
}  // namespace attest::gpu::cuda
