#include "certify/report/contracts.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

#include "certify/report/html/evidence.hpp"
#include "core/dtype/dtype.hpp"
#include "core/testing/catch.hpp"
#include "fixtures/emulated/emulation.hpp"
#include "fixtures/register.hpp"

namespace attest::certify {
namespace {

using proptest::Case;
using Words = std::vector<std::string>;

// A kernel that does what it does not say.
struct Undeclared {
  fixtures::Emulation emulation;
  attest_kernel kernel;

  explicit Undeclared(const fixtures::Emulation& does, DType dtype)
      : emulation(does), kernel(fixtures::emulated_kernel(emulation, dtype)) {
    kernel.description.numerics = {};
    kernel.description.numerics.struct_size = sizeof(attest_numerics);
  }
};

Case case_of(const char* problem) {
  return {Problem::parse(problem), proptest::Values::normal, 3, 1};
}

bool says(const Words& words, const std::string& begin) {
  return std::any_of(words.begin(), words.end(),
                     [&](const std::string& one) { return one.rfind(begin, 0) == 0; });
}

TEST_CASE("a contract that is not declared is found by trying the known ones", "[contracts]") {
  const proptest::Law& law = proptest::find_law("reference_forward");
  const Case c = case_of("hq=2,sq=9,sk=80,d=16,dtype=bf16");
  fixtures::Emulation emulation;
  emulation.name = "emulated/undeclared";
  emulation.p_cast = 1 + ATTEST_BF16;
  const Undeclared casts(emulation, DType::bf16);
  CHECK(law.check(casts.kernel, c).verdict == Verdict::violated);
  const Words words = passing_contracts(law, casts.kernel, {c});
  CHECK(says(words, "p_cast = bf16"));
  CHECK_FALSE(says(words, "p_cast = f16"));
  CHECK_FALSE(says(words, "dq_accumulator"));
  CHECK_FALSE(says(words, "exp_zero_not_one"));
}

// The hints for a kernel whose description leaves a part of its contract out, on the first seed on
// which it is refused.
Words hints_without(const fixtures::Emulation& emulation, const char* law_name, Case c,
                    const std::function<void(attest_numerics&)>& leave_out) {
  const proptest::Law& law = proptest::find_law(law_name);
  attest_kernel kernel = fixtures::emulated_kernel(emulation, c.problem.dtype);
  leave_out(kernel.description.numerics);
  constexpr std::uint64_t kSeeds = 400;
  while (law.check(kernel, c).verdict != Verdict::violated) REQUIRE(++c.seed < kSeeds);
  return hints_of(law, kernel, c, c);
}

fixtures::Emulation undeclared() {
  fixtures::Emulation emulation;
  emulation.name = "emulated/undeclared";
  return emulation;
}

TEST_CASE("the contract of automatic differentiation is found by its gradients", "[contracts]") {
  for (const DType dtype : {DType::bf16, DType::f16}) {
    Case c = case_of("b=2,hq=4,hkv=2,sq=5,sk=9,d=8,bias=hqk_drawn_1");
    c.problem.dtype = dtype;
    fixtures::Emulation emulation = undeclared();
    emulation.p_cast = emulation.dp_cast = static_cast<std::uint8_t>(1 + abi(dtype));
    emulation.normalized = emulation.delta_from_p = 1;
    const Words hints = hints_without(emulation, "reference_backward", c,
                                      [](attest_numerics& n) { n.dp_cast = n.delta_from_p = 0; });
    for (const std::string& hint : hints) UNSCOPED_INFO(hint);
    CHECK(says(hints, "would pass with numerics.dp_cast = " + std::string(name(dtype))));
  }
}

TEST_CASE("the contract of rounded scores is found", "[contracts]") {
  const auto without_scores = [](attest_numerics& n) { n.score_cast = 0; };
  for (const DType dtype : {DType::bf16, DType::f16}) {
    Case c = case_of("b=2,hq=2,sq=9,sk=40,d=16,scale=1");
    c.problem.dtype = dtype;
    fixtures::Emulation emulation = undeclared();
    emulation.score_cast = static_cast<std::uint8_t>(1 + abi(dtype));
    const Words hints = hints_without(emulation, "reference_forward", c, without_scores);
    for (const std::string& hint : hints) UNSCOPED_INFO(hint);
    CHECK(says(hints, "would pass with numerics.score_cast = " + std::string(name(dtype))));
  }
  // Where other contracts, which few kernels have, would do as well.
  fixtures::Emulation emulation = undeclared();
  emulation.score_cast = emulation.p_cast = 1 + ATTEST_BF16;
  emulation.normalized = 1;
  const Words hints = hints_without(emulation, "reference_forward",
                                    case_of("sq=18,sk=23,d=1,dv=30,dtype=bf16"), without_scores);
  for (const std::string& hint : hints) UNSCOPED_INFO(hint);
  CHECK(says(hints, "would pass with numerics.score_cast = bf16"));
}

TEST_CASE("hints name a contract, and results flushed to zero", "[contracts]") {
  const proptest::Law& law = proptest::find_law("reference_forward");
  const Case c = case_of("hq=2,sq=9,sk=80,d=16,dtype=bf16");
  fixtures::Emulation emulation;
  emulation.name = "emulated/undeclared";
  emulation.p_cast = 1 + ATTEST_BF16;
  const Undeclared casts(emulation, DType::bf16);
  CHECK(says(hints_of(law, casts.kernel, c, c), "would pass with numerics.p_cast = bf16"));
  // One of several that pass.
  REQUIRE(passing_contracts(law, casts.kernel, {c}).size() > 1);
  CHECK(hints_of(law, casts.kernel, c, c).size() == 1);
  // No contract makes a wrong mask right, and what passes needs no hint.
  CHECK(hints_of(law, fixtures::defective_kernel(fixtures::Defect::top_left_causal),
                 case_of("sq=5,sk=9,d=4,mask=causal_br"), case_of("sq=1,sk=2,d=1,mask=causal_br"))
            .empty());
  CHECK(hints_of(law, fixtures::defective_kernel(fixtures::Defect::none), c, c).empty());

  attest_kernel flushing = fixtures::defective_kernel(fixtures::Defect::none);
  flushing.forward = [](const void*, const attest_forward_args* args) {
    const attest_kernel& sound = fixtures::defective_kernel(fixtures::Defect::none);
    const attest_status status = sound.forward(sound.self, args);
    const TensorView O = view_of(*args->O, "O", {"b", "i", "h", "c"});
    const double least = underflow_unit(O.dtype()) / unit_roundoff(O.dtype());
    for (std::int64_t i = 0; i < O.extent(1); ++i) {
      for (std::int64_t x = 0; x < O.extent(3); ++x) {
        if (std::abs(O(0, i, 0, x)) < least) O.set(0, 0, i, 0, x);
      }
    }
    return status;
  };
  Case tiny = case_of("sq=5,sk=9,d=4,dtype=f16");
  tiny.values = proptest::Values::denormals;
  REQUIRE(law.check(flushing, tiny).verdict == Verdict::violated);
  CHECK(flushes_results(flushing, tiny));
  const Words hints = hints_of(law, flushing, tiny, tiny);
  CHECK(says(hints, "every element refused is 0 where"));
  CHECK_FALSE(says(hints, "would pass with numerics.flushes_subnormals"));
  CHECK_FALSE(flushes_results(fixtures::defective_kernel(fixtures::Defect::none), tiny));
  CHECK_FALSE(flushes_results(fixtures::defective_kernel(fixtures::Defect::top_left_causal),
                              case_of("sq=5,sk=9,d=4,mask=causal_br")));
}

// Inputs alone are flushed: no result is subnormal.
TEST_CASE("hints name the contract of a kernel that flushes subnormals", "[contracts]") {
  const proptest::Law& law = proptest::find_law("reference_forward");
  fixtures::Emulation emulation;
  emulation.name = "emulated/undeclared";
  emulation.flushes_subnormals = 1;
  for (const DType dtype : {DType::f32, DType::bf16}) {
    Case tiny = case_of("b=4,hq=4,sq=9,sk=40,d=16");
    tiny.problem.dtype = dtype;
    tiny.values = proptest::Values::denormals;
    const Undeclared flushing(emulation, dtype);
    REQUIRE(law.check(flushing.kernel, tiny).verdict == Verdict::violated);
    const Words hints = hints_of(law, flushing.kernel, tiny, tiny);
    for (const std::string& hint : hints) UNSCOPED_INFO(hint);
    CHECK(says(hints, "would pass with numerics.flushes_subnormals = 1 (FTZ)"));
    CHECK(hints.size() == 1);
  }
}

}  // namespace
}  // namespace attest::certify
