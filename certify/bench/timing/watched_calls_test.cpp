#include "certify/bench/timing/watched_calls.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "certify/bench/timing/timing.hpp"
#include "core/error.hpp"
#include "core/testing/catch.hpp"
#include "fixtures/register.hpp"

namespace attest::certify {
namespace {

using fixtures::Defect;

const Problem& problem() {
  static const Problem small = Problem::parse("b=2,hq=2,sq=17,sk=19,d=8,mask=causal_br");
  return small;
}

constexpr int kRounds = 7;

std::string objection(const attest_kernel& kernel, Direction direction = Direction::forward,
                      const Problem& timed = problem()) {
  Heartbeat beat;
  const Measurement measured = measure_watched({&kernel}, timed, direction, 1, kRounds, 5, beat);
  CHECK(beat.kernel == 0);
  CHECK(beat.round == kRounds - 1);
  CHECK(beat.began == 0);
  REQUIRE(measured.timings.size() == 1);
  CHECK(measured.timings.front().seconds.size() == kRounds);
  return measured.timings.front().objection;
}

TEST_CASE("a sound kernel is timed without an objection", "[bench]") {
  for (const Direction direction : {Direction::forward, Direction::backward}) {
    CHECK(objection(fixtures::defective_kernel(Defect::none), direction).empty());
  }
}

TEST_CASE("biases, sinks, masks of heads and rows that are left reach a kernel that is timed",
          "[bench]") {
  const Problem with_all = Problem::parse(
      "b=2,hq=2,sq=9,sk=12,d=8,mask=causal_br,sinks=drawn_3,bias=hk_f32_drawn_2,"
      "head_mask=bhqk_80_3,query_lengths=4_9");
  const attest_kernel &left = fixtures::kernel_leaving_rows(),
                      &right = fixtures::defective_kernel(Defect::none);
  for (const Direction direction : {Direction::forward, Direction::backward}) {
    CHECK(objection(right, direction, with_all).empty());
    CHECK(objection(left, direction, with_all).empty());
  }
  const auto seen = [](Defect defect, Direction direction, const char* text) {
    return objection(fixtures::defective_kernel(defect), direction, Problem::parse(text));
  };
  const char* const biased = "b=2,hq=2,sq=9,sk=12,d=8,bias=hk_f32_drawn_2";
  const char* const sunk = "b=2,hq=2,sq=9,sk=12,d=8,sinks=drawn_3";
  CHECK_THAT(seen(Defect::bias_of_first_head, Direction::forward, biased), Catch::Contains(" O["));
  CHECK_THAT(seen(Defect::dbias_overwritten, Direction::backward, biased),
             Catch::Contains("dBias["));
  CHECK_THAT(seen(Defect::dsinks_negated, Direction::backward, sunk), Catch::Contains("dSinks["));
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

// Every fourth call is wrong in all rows.
attest_status seldom_wrong(const void*, const attest_forward_args* args) {
  static std::atomic<int> calls{0};
  const attest_kernel& right = fixtures::defective_kernel(Defect::none);
  const attest_status status = right.forward(right.self, args);
  if (++calls % 4 != 0) return status;
  const std::int64_t elements = args->O->shape[0] * args->O->strides[0];
  for (std::int64_t e = 0; e < elements; ++e) static_cast<float*>(args->O->data)[e] += 1;
  return status;
}

TEST_CASE("every timed call is looked at", "[bench]") {
  attest_kernel kernel = fixtures::defective_kernel(Defect::none);
  kernel.forward = seldom_wrong;
  const std::string why = objection(kernel);
  INFO(why);
  CHECK(why.find("timed call 3: ") == 0);
}

// Results of earlier calls, found again by three words of the inputs or by their signs.
struct Memo {
  bool signs_alone = false;
  int hits = 0;
  std::map<std::array<float, 3>, std::pair<std::vector<float>, std::vector<float>>> kept;
} memo;

attest_status remembers(const void*, const attest_forward_args* args) {
  const auto floats = [](const attest_tensor& tensor) { return static_cast<float*>(tensor.data); };
  std::array<float, 3> key{*floats(*args->Q), *floats(*args->K), *floats(*args->V)};
  if (memo.signs_alone) {
    for (float& word : key) word = std::copysign(1.0f, word);
  }
  const auto elements = args->O->shape[0] * args->O->strides[0];
  const auto rows = args->LSE->shape[0] * args->LSE->strides[0];
  const auto known = memo.kept.find(key);
  if (known != memo.kept.end()) {
    ++memo.hits;
    std::copy_n(known->second.first.begin(), elements, floats(*args->O));
    std::copy_n(known->second.second.begin(), rows, floats(*args->LSE));
    return ATTEST_OK;
  }
  const attest_kernel& right = fixtures::defective_kernel(Defect::none);
  const attest_status status = right.forward(right.self, args);
  memo.kept[key] = {{floats(*args->O), floats(*args->O) + elements},
                    {floats(*args->LSE), floats(*args->LSE) + rows}};
  return status;
}

TEST_CASE("results of earlier calls are of no use", "[bench]") {
  attest_kernel kernel = fixtures::defective_kernel(Defect::none);
  kernel.forward = remembers;
  CHECK(objection(kernel).empty());
  CHECK(memo.hits == 0);
  CHECK(memo.kept.size() == kRounds + 1);
  memo.signs_alone = true;
  const std::string why = objection(kernel);
  INFO(why);
  CHECK(why.find("timed call ") == 0);
  CHECK(memo.hits > 0);
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
  Heartbeat beat;
  CHECK_THROWS_AS(measure_watched({&kernel}, problem(), Direction::forward, 1, kRounds, 1, beat),
                  InvalidProblem);
  CHECK_THROWS_AS(measure_watched({}, problem(), Direction::forward, 1, kRounds, 1, beat),
                  InvalidProblem);
}

}  // namespace
}  // namespace attest::certify
