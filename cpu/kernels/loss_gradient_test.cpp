// The loss gradient against its closed form in float64, with an a-priori bound of float32 errors.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include "core/testing/catch.hpp"
#include "cpu/kernels/kernel.hpp"
#include "cpu/testing/judged_call.hpp"
#include "cpu/testing/loss.hpp"

namespace attest::cpu {
namespace {

using attest::testing::bits_of;
using attest::testing::loss_problem;
using attest::testing::LossCall;
using attest::testing::Memory;

attest_status run(LossCall& call) {
  const attest_status status = call.run(loss_gradient_kernel());
  CHECK(call.gaps_intact());
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
        LossCall call(loss_problem(n, d), seed, seed % 2 == 0 ? Memory::spelled : Memory::scattered,
                      size, 1 + static_cast<std::int32_t>(seed % 3));
        REQUIRE(run(call) == ATTEST_OK);
        const testing::LossExpected expected = testing::loss_closed_form(call);
        const double dX = testing::worst_ratio(call.dX.view(), expected.dX);
        const double dY = testing::worst_ratio(call.dY.view(), expected.dY);
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
  LossCall first(loss_problem(150, 20), 3, Memory::spelled, 0.5);
  REQUIRE(run(first) == ATTEST_OK);
  for (const Memory memory : {Memory::spelled, Memory::scattered}) {
    for (const std::int32_t threads : {1, 2, 3, 5}) {
      LossCall other(loss_problem(150, 20), 3, memory, 0.5, threads);
      REQUIRE(run(other) == ATTEST_OK);
      CHECK(bits_of({&first.dX, &first.dY}) == bits_of({&other.dX, &other.dY}));
    }
  }
}

TEST_CASE("a loss gradient that is not claimed is refused and nothing written", "[cpu]") {
  for (const char* text :
       {"sq=4,d=3,dtype=bf16", "b=2,sq=4,d=3", "hq=2,sq=4,d=3", "sq=4,sk=5,d=3", "sq=4,d=3,dv=2"}) {
    INFO(text);
    LossCall call(Problem::parse(text));
    CHECK(run(call) == ATTEST_UNSUPPORTED);
    CHECK(call.dX.untouched());
    CHECK(call.dY.untouched());
  }
}

}  // namespace
}  // namespace attest::cpu
