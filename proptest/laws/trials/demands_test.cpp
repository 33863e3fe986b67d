#include "proptest/laws/trials/demands.hpp"

#include <limits>

#include "core/testing/catch.hpp"

namespace attest::proptest {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

KernelRun run_of(const Problem& p, double value, double lse) {
  KernelRun run;
  run.O = Tensor("O", p.dtype, p.o_axes());
  run.LSE = Tensor("LSE", DType::f32, p.lse_axes());
  for (std::int64_t i = 0; i < p.seqlen_q; ++i) {
    for (std::int64_t c = 0; c < p.head_dim_v; ++c) run.O.set(value, 0, i, 0, c);
    run.LSE.set(lse, 0, 0, i);
  }
  return run;
}

Verdict verdict(const Demands& demands, const KernelRun& before, const KernelRun& after) {
  return demands.judge(before, after, "with it").verdict;
}

TEST_CASE("a demand is met by its class alone", "[demands]") {
  const Problem p = Problem::parse("sq=2,d=2,dtype=bf16");
  const KernelRun before = run_of(p, 1, 2);
  constexpr double kValues[] = {kNan, kInfinity, -kInfinity, 3};
  const auto met = [&](Demand demand, double sign) {
    std::string which;
    for (const double value : kValues) {
      Demands demands(p);
      demands.ask(demand, 0, 1, 0, 1, sign);
      KernelRun after = before;
      after.O.set(value, 0, 1, 0, 1);
      which += verdict(demands, before, after) == Verdict::passed ? "x" : "-";
    }
    return which;
  };
  CHECK(met(Demand::nan, 1) == "x---");
  CHECK(met(Demand::infinite, 1) == "-x--");
  CHECK(met(Demand::infinite, -1) == "--x-");
  CHECK(met(Demand::infinite_or_nan, 1) == "xx--");
  CHECK(met(Demand::infinite_or_nan, -1) == "x-x-");
  CHECK(met(Demand::none, 1) == "xxxx");
  CHECK(met(Demand::same, 1) == "----");
}

TEST_CASE("bits without a demand stay", "[demands]") {
  const Problem p = Problem::parse("sq=2,d=2");
  const KernelRun before = run_of(p, 1, 2);
  Demands demands(p);
  CHECK(verdict(demands, before, before) == Verdict::passed);
  CHECK(verdict(demands, before, run_of(p, 1 + 0x1p-23, 2)) == Verdict::violated);
  CHECK(verdict(demands, before, run_of(p, 1, 2 + 0x1p-22)) == Verdict::violated);
  KernelRun after = before;
  demands.ask_row(Demand::nan, 0, 1, 0);
  CHECK_THAT(demands.judge(before, after, "with it").message,
             Catch::Contains("with it: O[") && Catch::Contains("must be exactly NaN"));
  for (std::int64_t c = 0; c < 2; ++c) after.O.set(kNan, 0, 1, 0, c);
  CHECK_THAT(demands.judge(before, after, "with it").message, Catch::Contains("with it: LSE["));
  after.LSE.set(kNan, 0, 0, 1);
  CHECK(verdict(demands, before, after) == Verdict::passed);
  after.O.set(kNan, 0, 0, 0, 0);
  CHECK(verdict(demands, before, after) == Verdict::violated);
}

}  // namespace
}  // namespace attest::proptest
