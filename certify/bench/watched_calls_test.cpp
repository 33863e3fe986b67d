#include "certify/bench/watched_calls.hpp"

#include <atomic>
#include <string>

#include "certify/bench/timing.hpp"
#include "core/error.hpp"
#include "core/testing/catch.hpp"
#include "fixtures/register.hpp"

namespace attest::certify {
namespace {

using fixtures::Defect;
using proptest::Direction;

const Problem& problem() {
  static const Problem small = Problem::parse("b=2,hq=2,sq=17,sk=19,d=8,mask=causal_br");
  return small;
}

constexpr int kRounds = 7;

std::string objection(const attest_kernel& kernel, Direction direction = Direction::forward) {
  const Measurement measured = measure_watched({{&kernel, problem()}}, direction, 1, kRounds, 5);
  REQUIRE(measured.timings.size() == 1);
  CHECK(measured.timings.front().seconds.size() == kRounds);
  return measured.timings.front().objection;
}

TEST_CASE("a sound kernel is timed without an objection", "[bench]") {
  for (const Direction direction : {Direction::forward, Direction::backward}) {
    CHECK(objection(fixtures::defective_kernel(Defect::none), direction).empty());
  }
}

TEST_CASE("a kernel that keeps its LSE gets no tensor for it", "[bench]") {
  attest_kernel kernel = fixtures::defective_kernel(Defect::none);
  kernel.description.features &= ~std::uint32_t{ATTEST_LSE};
  kernel.forward = [](const void*, const attest_forward_args* args) {
    const attest_kernel& right = fixtures::defective_kernel(Defect::none);
    return args->LSE == nullptr ? right.forward(right.self, args) : ATTEST_FAILED;
  };
  kernel.backward = [](const void*, const attest_backward_args* args) {
    return args->LSE == nullptr ? ATTEST_OK : ATTEST_FAILED;  // nothing is written
  };
  CHECK(objection(kernel).empty());
  CHECK(objection(kernel, Direction::backward).find("dQ") != std::string::npos);
}

// These kernels are right in their first calls.
TEST_CASE("what is right only while it is not timed is refused", "[bench]") {
  Registry registry;
  register_fixtures(registry);
  for (const char* name :
       {"result_by_pointer", "result_by_shape", "output_left", "idle_when_repeated"}) {
    INFO(name);
    const attest_kernel& kernel = registry.find(std::string("cheat/") + name);
    const std::string why = objection(kernel);
    INFO(why);
    CHECK(why.find("timed call ") == 0);
  }
}

// Half the work in every second timed call.
std::atomic<int> calls{0};

attest_status lazy(const void*, const attest_forward_args* args) {
  const attest_kernel& right = fixtures::defective_kernel(Defect::none);
  const attest_status status = right.forward(right.self, args);
  if (++calls > 4) *static_cast<float*>(args->O->data) *= 0.5f;
  return status;
}

TEST_CASE("other bits of the same values are refused", "[bench]") {
  attest_kernel kernel = fixtures::defective_kernel(Defect::none);
  kernel.forward = lazy;
  const std::string why = objection(kernel);
  INFO(why);
  CHECK_FALSE(why.empty());
  calls = 0;
  kernel.description.numerics.nondeterministic = 1;  // then the reference alone says so
  bool refused = false;
  for (std::uint64_t seed = 1; seed <= 8 && !refused; ++seed) {
    calls = 0;
    const Measurement measured =
        measure_watched({{&kernel, problem()}}, Direction::forward, 1, kRounds, seed);
    refused = !measured.timings.front().objection.empty();
  }
  CHECK(refused);
}

TEST_CASE("gradients that are wrong while they are timed are refused", "[bench]") {
  CHECK_FALSE(
      objection(fixtures::defective_kernel(Defect::dv_halved), Direction::backward).empty());
  CHECK_FALSE(
      objection(fixtures::defective_kernel(Defect::dq_accumulates), Direction::backward).empty());
}

TEST_CASE("a kernel that refuses the problem is not watched", "[bench]") {
  attest_kernel kernel = fixtures::defective_kernel(Defect::none);
  kernel.forward = [](const void*, const attest_forward_args*) { return ATTEST_UNSUPPORTED; };
  CHECK_THROWS_AS(measure_watched({{&kernel, problem()}}, Direction::forward, 1, kRounds, 1),
                  InvalidProblem);
  CHECK_THROWS_AS(measure_watched({}, Direction::forward, 1, kRounds, 1), InvalidProblem);
}

}  // namespace
}  // namespace attest::certify
