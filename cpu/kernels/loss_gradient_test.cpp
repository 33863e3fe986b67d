// The loss gradient against its closed form in float64, with an a-priori bound of float32 errors.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include "core/testing/catch.hpp"
#include "cpu/kernels/kernel.hpp"
#include "cpu/testing/call.hpp"
#include "cpu/testing/loss.hpp"

namespace attest::cpu {
namespace {

using testing::bits_of;
using testing::LossCall;
using testing::Memory;
using testing::Strided;

attest_status run(LossCall& call, const Problem& problem, std::int32_t threads) {
  const attest_kernel& kernel = loss_gradient_kernel();
  const AbiProblem form(problem, threads);
  constexpr std::size_t kGuard = 256;
  const std::size_t bytes = kernel.workspace_bytes(kernel.self, form.get(), ATTEST_LOSS_GRADIENT);
  call.workspace.assign(bytes + kGuard, std::byte{0xff});
  attest_loss_args args = call.arguments(form);
  args.workspace = call.workspace.data();
  args.workspace_bytes = bytes;
  const attest_status status = kernel.loss_gradient(kernel.self, &args);
  CHECK(std::all_of(call.workspace.end() - kGuard, call.workspace.end(),
                    [](std::byte b) { return b == std::byte{0xff}; }));
  return status;
}

TEST_CASE("the loss gradient is its closed form", "[cpu]") {
  double worst_dX = 0, worst_dY = 0;
  std::uint64_t seed = 0;
  for (const std::int64_t n : {1, 2, 17, 63, 64, 65, 130}) {
    for (const std::int64_t d : {1, 3, 16, 70}) {
      for (const double size : {0.25, 1.0}) {
        ++seed;
        INFO("n " << n << " d " << d << " size " << size);
        LossCall call(n, d, seed, seed % 2 == 0 ? Memory::packed : Memory::scattered, size);
        REQUIRE(run(call, testing::loss_problem(n, d), 1 + static_cast<std::int32_t>(seed % 3)) ==
                ATTEST_OK);
        const testing::LossExpected expected = loss_closed_form(call, n, d);
        const double dX = worst_ratio(call.dX.view(), expected.dX);
        const double dY = worst_ratio(call.dY.view(), expected.dY);
        CHECK(dX <= 1);
        CHECK(dY <= 1);
        worst_dX = std::max(worst_dX, dX), worst_dY = std::max(worst_dY, dY);
      }
    }
  }
  CHECK(std::min(worst_dX, worst_dY) > 0);
  std::printf("cpu/loss_gradient: worst error / bound: dX %.3f dY %.3f\n", worst_dX, worst_dY);
}

TEST_CASE("threads and memory layout change no bit of the loss gradient", "[cpu]") {
  LossCall first(150, 20, 3, Memory::packed, 0.5);
  REQUIRE(run(first, testing::loss_problem(150, 20), 1) == ATTEST_OK);
  for (const Memory memory : {Memory::packed, Memory::scattered}) {
    for (const std::int32_t threads : {1, 2, 3, 5}) {
      LossCall other(150, 20, 3, memory, 0.5);
      REQUIRE(run(other, testing::loss_problem(150, 20), threads) == ATTEST_OK);
      CHECK(bits_of({&first.dX, &first.dY}) == bits_of({&other.dX, &other.dY}));
    }
  }
}

TEST_CASE("a loss gradient that is not claimed is refused and nothing written", "[cpu]") {
  for (const char* text :
       {"sq=4,d=3,dtype=bf16", "b=2,sq=4,d=3", "hq=2,sq=4,d=3", "sq=4,sk=5,d=3", "sq=4,d=3,dv=2"}) {
    INFO(text);
    LossCall call(4, 3, 1, Memory::packed, 1);
    CHECK(run(call, Problem::parse(text), 1) == ATTEST_UNSUPPORTED);
    for (const Strided* output : {&call.dX, &call.dY}) {
      CHECK(std::all_of(output->bytes().begin(), output->bytes().end(),
                        [](std::byte b) { return b == std::byte{0xff}; }));
    }
  }
}

}  // namespace
}  // namespace attest::cpu
