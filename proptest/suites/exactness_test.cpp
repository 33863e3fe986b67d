// Which field of a contract can take the exact result of a probe away: there the probe holds the
// kernel to the bound that the contract has, and no looser one
// (docs/theory/error-bounds/exact-probes.md, "Laws and fields").
#include "proptest/laws/trials/exactness.hpp"

#include <string>

#include "core/testing/catch.hpp"
#include "fixtures/defects/defect.hpp"
#include "fixtures/emulated/emulation.hpp"
#include "proptest/laws/law.hpp"

namespace attest::proptest {
namespace {

using fixtures::Emulation;

template <typename Declare>
Numerics contract(const Declare& declare) {
  attest_numerics declared{};
  declared.struct_size = sizeof declared;
  declare(declared);
  return resolve(declared, DType::f32);
}

TEST_CASE("sums of integers are exact as far as the contract holds them", "[laws]") {
  const IntegerSums sums{49, 400};
  const auto exact = [&](const auto& declare) { return adds_exactly(contract(declare), sums); };
  CHECK(exact([](attest_numerics&) {}));
  CHECK(exact([](attest_numerics& n) { n.accumulation = ATTEST_TRUNCATING; }));
  CHECK(exact([](attest_numerics& n) { n.operand_roundoff = 0x1p-8; }));
  CHECK(exact([](attest_numerics& n) { n.accumulator = 1 + ATTEST_F16; }));
  CHECK_FALSE(exact([](attest_numerics& n) { n.accumulator = 1 + ATTEST_BF16; }));  // 256
  CHECK_FALSE(exact([](attest_numerics& n) { n.operand_roundoff = 0x1p-5; }));
  CHECK_FALSE(exact([](attest_numerics& n) { n.input_roundoff = 0x1p-5; }));
  CHECK_FALSE(exact([](attest_numerics& n) { n.scaled_q_roundoff = 0x1p-5; }));
  for (const std::int32_t bits : {8, 9, 24}) {
    CHECK(exact([=](attest_numerics& n) {
            n.accumulation = ATTEST_FUSED_BLOCKS;
            n.fused_block = 16;
            n.fused_fraction_bits = bits;
          }) == (bits > 8));
  }
}

LawResult checked(const char* law, const Emulation& e, const std::string& problem,
                  const attest_numerics* declared = nullptr) {
  const Problem p = Problem::parse(problem);
  attest_kernel kernel = fixtures::emulated_kernel(e, p.dtype);
  if (declared != nullptr) kernel.description.numerics = *declared;
  return find_law(law).check(kernel, Case{p, Values::normal, 1, 1});
}

// Its LSE is log(1 + 2^-14) where one key has all the weight, as it declares.
TEST_CASE("a kernel whose exp(0) is not 1 is held to the bound that it declares", "[laws]") {
  Emulation e;
  e.name = "emulated/exp_zero";
  e.exp_factor = 1 + 0x1p-14f;
  const attest_numerics plain =
      fixtures::defective_kernel(fixtures::Defect::none).description.numerics;
  for (const char* problem : {"sq=2,sk=2,d=8", "sq=17,sk=40,d=16"}) {
    INFO(problem);
    for (const char* law : {"one_hot_probe", "uniform_probe"}) {
      const LawResult result = checked(law, e, problem);
      INFO(law << ": " << result.message);
      CHECK(result.verdict == Verdict::passed);
    }
    CHECK(checked("one_hot_probe", e, problem, &plain).verdict == Verdict::violated);
  }
}

TEST_CASE("merges through LSE are held to the bound of the mean", "[laws]") {
  Emulation e;
  e.name = "emulated/splits";
  e.splits = 5;
  e.block_k = 4;
  CHECK(checked("uniform_probe", e, "sq=5,sk=64,d=8").verdict == Verdict::passed);
  CHECK(checked("one_hot_probe", e, "sq=64,sk=64,d=8").verdict == Verdict::passed);
}

// dO is 7 at most: with 64 heads dV passes what 8 bits hold, and a running sum in bf16 rounds.
TEST_CASE("sums of a large group in bf16 are held to their bound", "[laws]") {
  Emulation e;
  e.name = "emulated/group";
  e.gqa_accumulator = 1 + ATTEST_BF16;
  for (const char* problem :
       {"hq=64,hkv=1,sq=4,sk=4,d=8", "hq=64,hkv=1,sq=4,sk=4,d=8,dtype=bf16"}) {
    INFO(problem);
    CHECK(checked("one_hot_probe", e, problem).verdict == Verdict::passed);
  }
}

// dO V^T is an integer that 8 bits do not hold, delta the same one in float32.
TEST_CASE("a cast of dP is held to its bound where its type does not hold dP", "[laws]") {
  Emulation e;
  e.name = "emulated/dp_cast";
  e.dp_cast = 1 + ATTEST_BF16;
  attest_numerics plain = fixtures::defective_kernel(fixtures::Defect::none).description.numerics;
  const std::string problem = "sq=8,sk=8,d=8,dv=1024";
  CHECK(checked("one_hot_probe", e, problem).verdict == Verdict::passed);
  CHECK(checked("one_hot_probe", e, problem, &plain).verdict == Verdict::violated);
}

// A scale times log2(e), folded into Q before the product, makes no multiple of it exact but 0.
TEST_CASE("kernels that fold the base of the exponential into Q keep the exact score", "[laws]") {
  Emulation e;
  e.name = "emulated/folded";
  e.summation = fixtures::Summation::sequential;
  e.scale = fixtures::ScalePlace::folded_into_q;
  for (const char* problem : {"sq=15,sk=15,d=2,dv=96", "hq=3,sq=37,sk=37,d=8,dtype=bf16"}) {
    INFO(problem);
    CHECK(checked("one_hot_probe", e, problem).verdict == Verdict::passed);
  }
}

TEST_CASE("sums of scores in f16 keep clear of its range", "[laws]") {
  Emulation e;
  e.name = "emulated/half";
  e.accumulator = e.p_cast = 1 + ATTEST_F16;
  CHECK(checked("one_hot_probe", e, "sq=193,sk=193,d=3,dv=3").verdict == Verdict::passed);
}

TEST_CASE("a probe within bounds still refuses what is wrong", "[laws]") {
  attest_kernel kernel = fixtures::defective_kernel(fixtures::Defect::v_clamped);
  kernel.description.numerics.exp_zero_not_one = 1;
  const Case c{Problem::parse("sq=8,sk=8,d=8"), Values::normal, 1, 1};
  CHECK(find_law("one_hot_probe").check(kernel, c).verdict == Verdict::violated);
}

}  // namespace
}  // namespace attest::proptest
