#include "python/api/judgement.hpp"

#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "core/testing/catch.hpp"
#include "python/api/testing/example.hpp"

namespace attest::python {
namespace {

Judgement judged(Example& example, const char* contract = "f32") {
  attest_attention& given = example.call();
  given.contract = contract;
  const AttentionCall call = read_call(given, proptest::Work::sampled_judgement);
  return judge(call, read_run(call, given.got));
}

TEST_CASE("a known mistake is named", "[python]") {
  Example right("hq=2,sq=7,sk=13,d=8,mask=causal_br");
  Example wrong("hq=2,sq=7,sk=13,d=8,mask=causal_tl");
  right.O = wrong.O;
  right.LSE = wrong.LSE;
  const Judgement judgement = judged(right);
  CHECK(judgement.outcome == ATTEST_REFUSED);
  CHECK_THAT(judgement.text,
             Catch::Contains("\nequals the result with top-left causal alignment") &&
                 Catch::Contains("\nlargest term of the bound of O: ") &&
                 !Catch::Contains("would pass"));
}

TEST_CASE("a mistake in gradients is named where O and LSE are right", "[python]") {
  Example example("sq=7,d=8", Direction::backward);
  for (Tensor* gradient : {&example.dQ, &example.dK}) {
    for (std::int64_t i = 0; i < 7; ++i) {
      for (std::int64_t c = 0; c < 8; ++c) gradient->set(0, 0, i, 0, c);
    }
  }
  const Judgement judgement = judged(example);
  CHECK(judgement.outcome == ATTEST_REFUSED);
  CHECK_THAT(judgement.text, Catch::Contains("dQ["));
}

TEST_CASE("a mistake that a result equals by chance is not named", "[python]") {
  const std::string lacks = "dQ lacks the softmax scale";
  for (const char* dtype : {"f32", "bf16"}) {
    Example example("sq=1,sk=2,d=1,scale=0.25,dtype=" + std::string(dtype), Direction::backward);
    example.dQ.set(4 * example.dQ(0, 0, 0, 0), 0, 0, 0, 0);
    const Judgement judgement = judged(example);
    CAPTURE(judgement.text);
    CHECK(judgement.outcome == ATTEST_REFUSED);
    // One element of few digits equals much.
    CHECK((judgement.text.find(lacks) != std::string::npos) == (std::string(dtype) == "f32"));
  }
}

TEST_CASE("a contract under which a refused result would pass is named", "[python]") {
  Example example("hq=2,sq=7,sk=13,d=8");
  Tensor bound("O", DType::f64, example.problem.o_axes());
  const AbiTensor abi(bound.view());
  const attest_results bounds{abi.get(), nullptr, nullptr, nullptr, nullptr, nullptr, nullptr};
  attest_attention& call = example.call();
  call.contract = "tf32";
  REQUIRE(attest_bounds(&call, nullptr, &bounds) == ATTEST_PASSED);
  example.O.set(example.O(0, 3, 1, 2) + bound(0, 3, 1, 2) / 2, 0, 3, 1, 2);
  const Judgement judgement = judged(example);
  CHECK(judgement.outcome == ATTEST_REFUSED);
  CHECK_THAT(judgement.text, Catch::Contains("\nwould pass with numerics tf32"));
  CHECK(judged(example, "tf32").outcome == ATTEST_PASSED);
}

TEST_CASE("inputs on which wrong results would pass prove nothing", "[python]") {
  Example hidden("b=1,sq=3,d=4,mask=lengths_0");
  CHECK(judged(hidden).outcome == ATTEST_NOTHING_PROVED);
  CHECK_THAT(judged(hidden).text, Catch::Contains("no query sees a key"));
  Example zero("sq=3,d=4", Direction::forward, proptest::Values::indicator);
  for (std::int64_t i = 0; i < 3; ++i) {
    for (std::int64_t c = 0; c < 4; ++c) zero.Q.set(0x1p-40, 0, i, 0, c);
  }
  attest_attention& call = zero.call();
  REQUIRE(attest_reference(&call, &call.got) == ATTEST_PASSED);
  CHECK(judged(zero).outcome == ATTEST_NOTHING_PROVED);
  CHECK_THAT(judged(zero).text, Catch::Contains("cannot tell it from a wrong result"));
}

TEST_CASE("inputs on which no score matters prove nothing", "[python]") {
  const auto outcome = [](const char* problem, bool lse, double q, double k, double v) {
    Example example(problem);
    for (auto [tensor, value] :
         {std::pair{&example.Q, q}, std::pair{&example.K, k}, std::pair{&example.V, v}}) {
      if (std::isnan(value)) continue;  // as they are
      for (std::int64_t i = 0; i < tensor->view().extent(1); ++i) {
        for (std::int64_t c = 0; c < 4; ++c) tensor->set(value, 0, i, 0, c);
      }
    }
    attest_attention& call = example.call();
    REQUIRE(attest_reference(&call, &call.got) == ATTEST_PASSED);
    if (!lse) call.got.LSE = nullptr;
    const AttentionCall read = read_call(call, proptest::Work::sampled_judgement);
    return judge(read, read_run(read, call.got)).outcome;
  };
  const double as_it_is = std::numeric_limits<double>::quiet_NaN();
  const char* const some = "sq=3,d=4";
  CHECK(outcome(some, true, as_it_is, as_it_is, as_it_is) == ATTEST_PASSED);
  CHECK(outcome(some, true, 0, as_it_is, as_it_is) == ATTEST_NOTHING_PROVED);
  CHECK(outcome(some, true, as_it_is, 2, as_it_is) == ATTEST_NOTHING_PROVED);
  CHECK(outcome("sq=3,d=4,scale=0", true, as_it_is, as_it_is, as_it_is) == ATTEST_NOTHING_PROVED);
  CHECK(outcome(some, false, as_it_is, as_it_is, 1) == ATTEST_NOTHING_PROVED);
  CHECK(outcome(some, true, as_it_is, as_it_is, 1) == ATTEST_PASSED);
  CHECK(outcome("sq=3,sk=1,d=4", false, as_it_is, as_it_is, as_it_is) == ATTEST_PASSED);
  CHECK(outcome("sq=3,d=4,alibi=standard", true, 0, as_it_is, as_it_is) == ATTEST_PASSED);
}

TEST_CASE("a long problem is judged by a sample", "[python]") {
  Example example("sq=2200,d=4,mask=causal_tl");
  CHECK(judged(example).outcome == ATTEST_PASSED);
  for (std::int64_t i = 0; i < 2200; ++i) example.O.set(example.O(0, i, 0, 1) + 1, 0, i, 0, 1);
  const Judgement judgement = judged(example);
  CHECK(judgement.outcome == ATTEST_REFUSED);
  CHECK_THAT(judgement.text, Catch::Contains("sampled elements"));
}

TEST_CASE("the gradient of sinks is judged whole beside a sample", "[python]") {
  Example example("hq=2,sq=2200,d=4,mask=causal_tl,sinks=drawn_1", Direction::backward);
  CHECK(judged(example).outcome == ATTEST_PASSED);
  example.dSinks.set(example.dSinks(1) * 1.25, 1);
  const Judgement judgement = judged(example);
  CHECK(judgement.outcome == ATTEST_REFUSED);
  CHECK_THAT(judgement.text, Catch::Contains("dSinks[num_heads_q=1]"));
}

}  // namespace
}  // namespace attest::python
