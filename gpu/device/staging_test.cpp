#include "gpu/device/staging.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <bit>
#include <string>
#include <vector>

#include "core/testing/catch.hpp"
#include "core/testing/requirement.hpp"
#include "gpu/device/probe.hpp"
#include "gpu/device/staged_kernel.hpp"
#include "gpu/device/testing/misbehaving.hpp"
#include "gpu/kernels/tiles/tensor.hpp"
#include "gpu/testing/call.hpp"

namespace attest::gpu::cuda {
namespace {

[[maybe_unused]] const bool kNeedsDevice =
    attest::testing::require_for_all([] { return device().absent_because; });

struct Outcome {
  attest_status status;
  std::optional<Finding> finding;
  std::vector<std::uint64_t> Q, O;

  bool doubled() const {
    const auto value = [](std::uint64_t bits) {
      return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    };
    return std::equal(Q.begin(), Q.end(), O.begin(), O.end(),
                      [&](auto q, auto o) { return value(o) == 2 * value(q); });
  }
};

Outcome run(Mistake mistake) {
  const StagedKernel staged(doubling_kernel(mistake), "test");
  const gpu::testing::Call call("b=2,hq=3,sq=20,d=8");
  const attest_forward_args args = call.forward_arguments();
  const attest_status status = staged.kernel().forward(staged.kernel().self, &args);
  return {status, take_finding(), call.Q.bits(), call.O.bits()};
}

TEST_CASE("tensors arrive, results return, on both streams", "[gpu][device]") {
  for (int call = 0; call < 4; ++call) {
    const Outcome outcome = run(Mistake::none);
    CHECK(outcome.status == ATTEST_OK);
    CHECK_FALSE(outcome.finding);
    CHECK(outcome.doubled());
  }
}

TEST_CASE("a kernel that ignores its stream reads what is not there yet", "[gpu][device][delay]") {
  run(Mistake::ignores_stream);  // the first launch takes longest to begin
  CHECK_FALSE(run(Mistake::ignores_stream).doubled());
}

TEST_CASE("writes beside a buffer and into an input are found", "[gpu][device]") {
  const auto found = [](Mistake mistake, Finding::Kind kind, const std::string& text) {
    const Outcome outcome = run(mistake);
    CHECK(outcome.status == ATTEST_FAILED);
    REQUIRE(outcome.finding);
    CHECK(outcome.finding->kind == kind);
    CHECK(outcome.finding->text == text);
    CHECK_FALSE(take_finding());
  };
  using Kind = Finding::Kind;
  found(Mistake::writes_behind, Kind::wrote_beside,
        "O: 4 bytes written behind the buffer on the device");
  found(Mistake::writes_before, Kind::wrote_beside,
        "O: 4 bytes written before the buffer on the device");
  found(Mistake::uses_workspace, Kind::wrote_beside,
        "workspace: 1 bytes written behind the buffer on the device");
  found(Mistake::writes_input, Kind::wrote_input, "Q: written on the device");
}

TEST_CASE("a launch that CUDA refuses is named, and the next call is not spoilt", "[gpu][device]") {
  const Outcome outcome = run(Mistake::refused_launch);
  CHECK(outcome.status == ATTEST_FAILED);
  REQUIRE(outcome.finding);
  CHECK(outcome.finding->kind == Finding::Kind::device_failed);
  CHECK(outcome.finding->text.find("cudaErrorInvalid") != std::string::npos);
  CHECK(run(Mistake::none).doubled());
}

TEST_CASE("what lies between the elements of a strided output stays", "[gpu][device]") {
  // Two tensors of every second word, one in the gaps of the other.
  std::vector<float> values(16, 7), inputs(8, 3);
  std::array<std::int64_t, 4> shape{1, 8, 1, 1}, strides{16, 2, 1, 1}, packed{8, 1, 1, 1};
  const auto tensor = [&](float* data, std::array<std::int64_t, 4>& steps) {
    return attest_tensor{data, {ATTEST_CPU, 0}, 4, {2, 32, 1}, shape.data(), steps.data(), 0};
  };
  const attest_tensor even = tensor(values.data(), strides),
                      odd = tensor(values.data() + 1, strides), Q = tensor(inputs.data(), packed);
  Staging staging;
  const attest_tensor* const q = staging.tensor("Q", &Q, Staging::Use::input);
  const attest_tensor* const o = staging.tensor("O", &even, Staging::Use::output);
  staging.tensor("LSE", &odd, Staging::Use::output);
  staging.fill(nullptr);
  // O(0) = Q(0), O(1) = Q(1)
  for (const std::int64_t i : {0, 1}) {
    REQUIRE(cudaMemcpy(elements<float>(o) + 2 * i, elements<float>(q) + i, sizeof(float),
                       cudaMemcpyDeviceToDevice) == cudaSuccess);
  }
  CHECK_FALSE(staging.finish(nullptr));
  CHECK(values == std::vector<float>{3, 7, 3, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7});
}

// Last, in a program of its own by its tag: the context does not survive it.
TEST_CASE("a stray pointer is named", "[.][stray]") {
  const Outcome outcome = run(Mistake::stray_pointer);
  CHECK(outcome.status == ATTEST_FAILED);
  REQUIRE(outcome.finding);
  CHECK(outcome.finding->text.find("cudaErrorIllegalAddress") != std::string::npos);
}

}  // namespace
}  // namespace attest::gpu::cuda
