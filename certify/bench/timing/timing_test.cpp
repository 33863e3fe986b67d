#include "certify/bench/timing/timing.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "certify/bench/eigen_attention.hpp"
#include "core/error.hpp"
#include "core/registry.hpp"
#include "core/tensor.hpp"
#include "core/testing/catch.hpp"
#include "fixtures/register.hpp"

namespace attest::certify {
namespace {

TEST_CASE("a wrong kernel is not timed", "[bench]") {
  const Problem problem = Problem::parse("sq=20,sk=24,d=8,dv=12");
  CHECK_NOTHROW(verify({&eigen_kernel()}, problem, 1));
  Registry broken;
  register_fixtures(broken);
  // The mask matters to a kernel that misplaces its causal diagonal.
  const Problem masked = Problem::parse("sq=20,sk=24,d=8,mask=causal_br");
  for (const char* defect : {"zero_gradients", "top_left_causal", "missing_rescale", "row_sum_off",
                             "dv_halved", "nan_output", "input_modified"}) {
    INFO(defect);
    CHECK_THROWS_AS(verify({&broken.find(std::string("broken/") + defect)}, masked, 1),
                    InvalidProblem);
  }
}

TEST_CASE("every candidate is timed once per round", "[bench]") {
  const Problem problem = Problem::parse("hq=2,sq=5,sk=7,d=3");
  for (const Direction direction : {Direction::forward, Direction::backward}) {
    const Measurement m = measure({&eigen_kernel(), &eigen_kernel()}, problem, direction, 2, 3, 1);
    REQUIRE(m.timings.size() == 2);
    for (const KernelTiming& timing : m.timings) CHECK(timing.seconds.size() == 3);
    CHECK(m.peak_flops.size() == 3);
  }
  CHECK_THROWS_AS(measure({}, problem, Direction::forward, 1, 1, 1), InvalidProblem);
  const Problem masked = Problem::parse("sq=5,d=3,mask=causal_br");
  CHECK_THROWS_AS(measure({&eigen_kernel()}, masked, Direction::forward, 1, 1, 1), InvalidProblem);
}

// Takes a call whose tensors have the problem's dtype, LSE that of its contract.
attest_kernel particular_kernel() {
  attest_kernel kernel = eigen_kernel();
  kernel.workspace_bytes = nullptr;
  kernel.forward = [](const void*, const attest_forward_args* args) {
    const DType wanted = dtype_of(args->problem->dtype);
    const std::vector<std::string_view> four{"b", "s", "h", "d"}, three{"b", "h", "s"};
    bool same = true;
    for (const attest_tensor* tensor : {args->Q, args->K, args->V, args->O}) {
      same = same && view_of(*tensor, "tensor", four).dtype() == wanted;
    }
    const DType lse = wanted == DType::f64 ? DType::f64 : DType::f32;
    same = same && view_of(*args->LSE, "LSE", three).dtype() == lse;
    return same ? ATTEST_OK : ATTEST_FAILED;
  };
  return kernel;
}

TEST_CASE("workspaces lie at cache lines, none is null", "[bench]") {
  const Problem problem = Problem::parse("sq=5,d=3");
  attest_kernel kernel = eigen_kernel();
  kernel.forward = [](const void*, const attest_forward_args* args) {
    const auto at = reinterpret_cast<std::uintptr_t>(args->workspace);
    return at % 64 == 0 && (at == 0) == (args->workspace_bytes == 0) ? ATTEST_OK : ATTEST_FAILED;
  };
  for (const std::size_t bytes : {0U, 1U, 100U, 1000U}) {
    static std::size_t wanted;
    wanted = bytes;
    kernel.workspace_bytes = [](const void*, const attest_problem*, std::uint32_t) {
      return wanted;
    };
    CHECK_NOTHROW(measure({&kernel}, problem, Direction::forward, 1, 1, 1));
  }
  kernel.workspace_bytes = nullptr;
  CHECK_NOTHROW(measure({&kernel}, problem, Direction::forward, 1, 1, 1));
}

TEST_CASE("what is timed has the problem's dtype", "[bench]") {
  const attest_kernel kernel = particular_kernel();
  for (const char* dtype : {"f64", "f32", "bf16", "f16"}) {
    INFO(dtype);
    const Problem problem = Problem::parse(std::string("sq=5,d=3,dtype=") + dtype);
    CHECK_NOTHROW(measure({&kernel}, problem, Direction::forward, 1, 1, 1));
  }
}

TEST_CASE("useful operations count multiplications and additions of the visible pairs", "[bench]") {
  CHECK(useful_flops(Problem::parse("hq=2,sq=3,sk=5,d=4"), Direction::forward) ==
        2 * 3 * 5 * 4 * 4);
  CHECK(useful_flops(Problem::parse("hq=2,sq=3,sk=5,d=4"), Direction::backward) ==
        2 * 3 * 5 * 10 * 4);
}

}  // namespace
}  // namespace attest::certify
