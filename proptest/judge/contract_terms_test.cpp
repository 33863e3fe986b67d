#include "proptest/judge/contract_terms.hpp"

#include <algorithm>

#include "core/testing/catch.hpp"
#include "fixtures/register.hpp"
#include "proptest/laws/trials/trial.hpp"

namespace attest::proptest {
namespace {

// The term named for an output that is off by much, under a contract.
std::string named(const attest_numerics& numerics, const std::string& problem,
                  const std::string& output, double stored_error = 0) {
  attest_kernel kernel = fixtures::defective_kernel(fixtures::Defect::none);
  kernel.description.numerics = numerics;
  const Case c{Problem::parse(problem), Values::normal, 4, 1};
  const Direction direction = output[0] == 'd' ? Direction::backward : Direction::forward;
  Solved solved(kernel, c.problem, make_values(c.problem, c.values, c.seed), direction, c);
  KernelRun run = solved.run;
  run.LSE.set(run.LSE(0, 0, 0) + stored_error, 0, 0, 0);
  Tensor& spoiled = output == "O"    ? run.O
                    : output == "dQ" ? run.dQ
                    : output == "dK" ? run.dK
                                     : run.dV;
  spoiled.set(spoiled(0, 0, 0, 0) + 100, 0, 0, 0, 0);
  const std::vector<Comparison> comparisons = solved.truth.judge(run);
  const auto found = std::find_if(comparisons.begin(), comparisons.end(),
                                  [&](const Comparison& one) { return one.output == output; });
  REQUIRE(found != comparisons.end());
  REQUIRE(found->verdict == Verdict::violated);
  return solved.truth.dominating_term(run, *found);
}

TEST_CASE("the term that dominates is named", "[truth]") {
  const attest_numerics plain =
      fixtures::defective_kernel(fixtures::Defect::none).description.numerics;
  const std::string f32 = "sq=3,sk=40,d=128", bf16 = f32 + ",dtype=bf16";
  CHECK(named(plain, f32, "O") == "accumulation");
  CHECK(named(plain, bf16, "O") == "output rounding");
  CHECK(named(plain, f32, "dQ") == "accumulation");
  CHECK(named(plain, f32, "dQ", 0.01) == "stored O and LSE");
  attest_numerics declared = plain;
  declared.exp_ulps = 0x1p14;
  CHECK(named(declared, f32, "O") == "exp");
  declared = plain;
  declared.p_cast = 1 + ATTEST_BF16;
  CHECK(named(declared, f32, "O") == "cast of P");
  CHECK(named(declared, f32, "dK") == "cast of P");
  declared.p_cast = 0;
  declared.dp_cast = 1 + ATTEST_BF16;
  CHECK(named(declared, f32, "dQ") == "cast of dP");
  declared = plain;
  declared.score_cast = 1 + ATTEST_BF16;
  CHECK(named(declared, f32, "O") == "rounding of scores");
  declared = plain;
  declared.input_roundoff = 0x1p-11;
  CHECK(named(declared, f32, "O") == "input rounding");
}

TEST_CASE("each term leaves the others as they are", "[truth]") {
  attest_numerics declared{};
  declared.struct_size = sizeof declared;
  declared.p_cast = 1 + ATTEST_BF16;
  declared.lse_splits = 4;
  const Numerics numerics = resolve(declared, DType::f32);
  std::vector<std::string_view> names;
  for (const WithoutTerm& one : without_each_term(numerics)) {
    INFO(one.term);
    names.push_back(one.term);
    const bool exp = one.term == "exp";
    CHECK(one.numerics.exp_ulps * one.numerics.accumulator_roundoff ==
          (exp ? 0 : numerics.exp_ulps * numerics.accumulator_roundoff));
    CHECK((one.numerics.p_roundoff == numerics.p_roundoff) == (one.term != "cast of P"));
  }
  CHECK(names == std::vector<std::string_view>{"accumulation", "exp", "output rounding",
                                               "cast of P", "merges through LSE"});
}

}  // namespace
}  // namespace attest::proptest
