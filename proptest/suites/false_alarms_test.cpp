// Every simpler bound here was tried first and accuses a kernel that keeps its contract; the
// library's does not (docs/theory/error-bounds/measured.md, "False alarms").
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "core/testing/catch.hpp"
#include "fixtures/defects/defect.hpp"
#include "proptest/testing/emulated_case.hpp"
#include "reference/bounds/steps/roundoff.hpp"

namespace attest::proptest {
namespace {

using fixtures::Emulation;
using fixtures::ScalePlace;
using fixtures::Summation;

constexpr double kFloatRoundoff = 0x1p-24;

std::string spelled(std::int64_t queries, std::int64_t keys, int d, int dv, DType dtype) {
  return "sq=" + std::to_string(queries) + ",sk=" + std::to_string(keys) +
         ",d=" + std::to_string(d) + ",dv=" + std::to_string(dv) +
         ",dtype=" + std::string(name(dtype));
}

void fill(Tensor& tensor, double value) {
  double* data = tensor.doubles();
  for (std::int64_t e = 0; e < tensor.view().size(); ++e) data[e] = value;
}

// One query, keys that all score the same but one that scores more, and constant columns of V.
InputValues equal_keys(const std::string& text, int repetition) {
  const Problem problem = Problem::parse(text);
  InputValues in = make_values(problem, Values::normal, static_cast<std::uint64_t>(repetition));
  const TensorView Q = in.Q.view(), K = in.K.view(), V = in.V.view();
  const double common = round_to(problem.dtype, 0.3 + 0.02 * repetition);
  for (std::int64_t l = 0; l < problem.head_dim_qk; ++l) {
    Q.set(1, 0, 0, 0, l);
    for (std::int64_t j = 0; j < problem.seqlen_k; ++j) K.set(j == 0 ? 1.0 : common, 0, j, 0, l);
  }
  for (std::int64_t c = 0; c < problem.head_dim_v; ++c) {
    for (std::int64_t j = 1; j < problem.seqlen_k; ++j) V.set(V(0, 0, 0, c), 0, j, 0, c);
  }
  return in;
}

// Largest error over the library's bound and over a simpler one.
struct Alarm {
  double ours = 0, simpler = 0;

  void add(double error, double our_bound, double simpler_bound) {
    ours = std::max(ours, error / our_bound);
    simpler = std::max(simpler, error / simpler_bound);
  }
};

// Bounds the additions of O and l when every rounding counts as independent: with V constant
// nothing else of the probabilistic bound is left. One per cent covers a second-order factor.
double independent_additions(const EmulatedCase& c, double O) {
  constexpr double kRecordsAndSplits = 10;  // two records, eight undeclared splits
  const double additions = static_cast<double>(c.problem().seqlen_k) + kRecordsAndSplits;
  return 1.01 * reference::kLambda * std::sqrt(2 * additions) * kFloatRoundoff * std::abs(O);
}

double output_rounding(const EmulatedCase& c, double O) {
  return (unit_roundoff(c.problem().dtype) + 3 * kFloatRoundoff) * std::abs(O);
}

TEST_CASE("additions of many equal weights drift in one direction", "[validation]") {
  Emulation sequential;
  sequential.name = "emulated/one_chain";
  sequential.summation = Summation::sequential;
  for (const std::int64_t keys : {4096, 16384}) {
    sequential.block_k = keys;
    Alarm alarm;
    for (int repetition = 0; repetition < 20; ++repetition) {
      const std::string text = spelled(1, keys, 4, 8, DType::f32);
      const EmulatedCase c(text, equal_keys(text, repetition), sequential);
      const KernelRun got = c.run();
      for (std::int64_t column = 0; column < 8; ++column) {
        const double exact = c.exact().O(0, 0, 0, column);
        alarm.add(std::abs(got.O(0, 0, 0, column) - exact),
                  c.bounds().O.probabilistic(0, 0, 0, column),
                  independent_additions(c, exact) + output_rounding(c, exact));
      }
      CHECK(c.judge_O(got).verdict == Verdict::passed);
      CHECK(c.judge_LSE(got).verdict == Verdict::passed);
    }
    std::printf("drift, %lld keys: error over lambda sqrt(n) u %.2f, over the bound %.2f\n",
                static_cast<long long>(keys), alarm.simpler, alarm.ours);
    CHECK(alarm.simpler > 1);
    CHECK(alarm.ours <= 1);
  }
}

TEST_CASE("equal weights are cast with the same error", "[validation]") {
  for (const DType dtype : {DType::bf16, DType::f16}) {
    for (const std::int64_t keys : {4096, 16384}) {
      Emulation cast;
      cast.name = "emulated/cast_p";
      cast.p_cast = static_cast<std::uint8_t>(1 + abi(dtype));
      Alarm alarm;
      for (int repetition = 0; repetition < 20; ++repetition) {
        const std::string text = spelled(1, keys, 4, 8, dtype);
        const EmulatedCase c(text, equal_keys(text, repetition), cast);
        const KernelRun got = c.run();
        // All weights equal, and the one larger one: sqrt(sum P^2) <= P_max sqrt(n).
        const double score = c.values().K(0, 0, 0, 0) * 4 * c.problem().scale();
        const double largest = std::exp(score - c.exact().LSE(0, 0, 0));
        const double others = (1 - largest) / static_cast<double>(keys - 1);
        const double independent =
            reference::kLambda * unit_roundoff(dtype) *
            std::hypot(largest, others * std::sqrt(static_cast<double>(keys)));
        const double flushed = static_cast<double>(keys) * underflow_unit(dtype) * largest;
        for (std::int64_t column = 0; column < 8; ++column) {
          const double exact = c.exact().O(0, 0, 0, column);
          const double simpler = (independent + flushed) * std::abs(exact) +
                                 independent_additions(c, exact) + output_rounding(c, exact);
          alarm.add(std::abs(got.O(0, 0, 0, column) - exact),
                    c.bounds().O.probabilistic(0, 0, 0, column), simpler);
        }
        CHECK(c.judge_O(got).verdict == Verdict::passed);
      }
      std::printf("cast to %s, %lld keys: error over ungrouped bound %.2f, over the bound %.2f\n",
                  std::string(name(dtype)).c_str(), static_cast<long long>(keys), alarm.simpler,
                  alarm.ours);
      CHECK(alarm.simpler > 1);
      CHECK(alarm.ours <= 1);
    }
  }
}

// log sum P e^-eps >= log(1 - sum P eps), kept positive where the sum passes one half.
double clipped_lse_bound(double proved) {
  const double mean_error = std::expm1(proved);  // the bound is log1p of it and more
  return -std::log(std::max(1 - mean_error, 0.5));
}

TEST_CASE("large score errors leave LSE outside the clipped logarithm", "[validation]") {
  Emulation rounded_q;
  rounded_q.name = "emulated/rounded_q";
  rounded_q.scale = ScalePlace::rounded_into_q;
  for (const Values values : {Values::one_hot, Values::logits_1e4}) {
    Alarm alarm;
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
      const std::string text = spelled(16, 32, values == Values::one_hot ? 3 : 80, 8, DType::bf16);
      const EmulatedCase c(text, make_values(Problem::parse(text), values, seed), rounded_q);
      const KernelRun got = c.run();
      for (std::int64_t i = 0; i < 16; ++i) {
        const double proved = c.bounds().LSE.deterministic(0, 0, i);
        alarm.add(std::abs(got.LSE(0, 0, i) - c.exact().LSE(0, 0, i)),
                  c.bounds().LSE.probabilistic(0, 0, i), clipped_lse_bound(proved));
      }
      CHECK(c.judge_LSE(got).verdict == Verdict::passed);
    }
    std::printf("LSE, %s: error over -log(1 - S) %.2f, over the bound %.2f\n",
                std::string(name(values)).c_str(), alarm.simpler, alarm.ours);
    CHECK(alarm.simpler > 1);
    CHECK(alarm.ours <= 1);
  }
}

TEST_CASE("f16 kernels may overflow outside the generator's domain", "[validation]") {
  Emulation rounded_q;
  rounded_q.name = "emulated/rounded_q";
  rounded_q.scale = ScalePlace::rounded_into_q;
  const std::string text = "sq=4,sk=8,d=8,dtype=f16,scale=64";
  InputValues large = make_values(Problem::parse(text), Values::normal, 1);
  const TensorView Q = large.Q.view();
  for (std::int64_t i = 0; i < 4; ++i) Q.set(round_to(DType::f16, 2048), 0, i, 0, 0);
  const EmulatedCase outside(text, large, rounded_q);
  CHECK(outside.judge_O(outside.run()).verdict == Verdict::violated);

  for (const Values values : all_values()) {
    for (const Emulation& emulation : fixtures::legitimate_emulations(DType::f16)) {
      const std::string inside_text = spelled(4, 40, 16, 16, DType::f16);
      const EmulatedCase inside(inside_text, make_values(Problem::parse(inside_text), values, 2),
                                emulation);
      const KernelRun got = inside.run();
      INFO(name(values) << " " << emulation.name);
      CHECK(inside.judge_O(got).verdict == Verdict::passed);
      CHECK(inside.judge_LSE(got).verdict == Verdict::passed);
    }
  }
}

TEST_CASE("rescaling by an exp(0) other than 1 touches every tile", "[validation]") {
  // Equal scores read one key at a time: the maximum never rises, yet each step multiplies what was
  // summed by exp(0), here 41 units of 2^-24 below 1.
  attest_numerics declared{};
  declared.struct_size = sizeof declared;
  declared.exp_ulps = 41;
  const double step = 1 - declared.exp_ulps * kFloatRoundoff;
  const Problem p = Problem::parse("sq=1,sk=1024,d=4,dv=8");
  InputValues in = make_values(p, Values::halves, 1);
  fill(in.Q, 0);
  const auto exact = reference::forward(p, {}, in.Q.view(), in.K.view(), in.V.view());
  const auto bound = [&](std::int32_t exp_zero_not_one) {
    declared.exp_zero_not_one = exp_zero_not_one;
    return reference::forward_bounds(p, {}, resolve(declared, p.dtype), in.Q.view(), in.K.view(),
                                     in.V.view(), exact)
        .O.deterministic;
  };
  const Tensor rises_only = bound(0), every_tile = bound(1);
  Alarm alarm;
  for (std::int64_t c = 0; c < p.head_dim_v; ++c) {
    double sum = 0, weights = 0;
    for (std::int64_t j = 0; j < p.seqlen_k; ++j) {
      sum = sum * step + in.V(0, j, 0, c);
      weights = weights * step + 1;
    }
    alarm.add(std::abs(sum / weights - exact.O(0, 0, 0, c)), every_tile(0, 0, 0, c),
              rises_only(0, 0, 0, c));
  }
  std::printf(
      "exp(0) != 1: error over rescales where the maximum rises %.2f, over the bound %.2f\n",
      alarm.simpler, alarm.ours);
  CHECK(alarm.simpler > 1);
  CHECK(alarm.ours <= 1);
}

TEST_CASE("flushed weights are multiplied by dP - delta", "[validation]") {
  // One key has all the weight, the other's P is subnormal and flushed; dP - delta is 10^6.
  const Problem p = Problem::parse("sq=1,sk=2,d=1,scale=1");
  InputValues in = make_values(p, Values::ones, 1);
  fill(in.Q, 1);
  in.K.set(0, 0, 0, 0, 0);
  in.K.set(-87.5, 0, 1, 0, 0);  // exp(-87.5) = 2^-126.2
  in.V.set(0, 0, 0, 0, 0);
  in.V.set(0x1p20, 0, 1, 0, 0);
  fill(in.dO, 1);
  fill(in.dLSE, 0);
  Emulation e;
  e.name = "flushing";
  e.flush = 1;
  const attest_kernel kernel = fixtures::emulated_kernel(e, p.dtype);
  constexpr std::uint64_t kSeed = 2;
  const Truth truth(kernel.description, p, in, Direction::backward, kSeed);
  const KernelRun got = run(kernel, p, in, Direction::backward, Case{p, Values::normal, kSeed, 1});
  const std::vector<Comparison> comparisons = truth.judge(got);
  const Comparison& dK = comparisons[3];
  const double simple = 2 * 0x1p-126;
  CHECK(std::abs(dK.got - dK.exact) > simple);
  CHECK(gravest(comparisons).verdict == Verdict::passed);
}

TEST_CASE("aggregates cover elements that round alike", "[validation]") {
  // Equal weights and V = 1: every row adds the same 130 numbers, so that all elements carry one
  // error, and their root mean square is no average. Normalising P first makes it large.
  const std::string text = "hq=2,sq=130,d=80,scale=0";
  Emulation e;
  e.name = "emulated/normalized";
  e.normalized = 1;
  e.block_k = 130;
  e.summation = Summation::sequential;
  const EmulatedCase c(text, make_values(Problem::parse(text), Values::ones, 1), e);
  const Comparison O = c.judge_O(c.run());
  const double random_walk = std::sqrt(static_cast<double>(c.problem().seqlen_k)) * kFloatRoundoff;
  CHECK(std::abs(O.got - O.exact) > random_walk);
  CHECK(O.verdict == Verdict::passed);
}

// Row i sees i keys of equal weights, and all rows of dO are one: the casts of 1/2 to 1/15 are all
// that errs, in every element of dV.
TEST_CASE("aggregates cover casts that all elements have in common", "[validation]") {
  constexpr std::int64_t kRows = 15, kColumns = 33;
  const Problem p = Problem::parse("sq=15,sk=15,d=17,dv=33,mask=causal_tl,scale=0");
  InputValues in = make_values(p, Values::normal, 1);
  const TensorView dO = in.dO.view();
  for (std::int64_t i = 1; i < kRows; ++i) {
    for (std::int64_t c = 0; c < kColumns; ++c) in.dO.set(dO(0, 0, 0, c), 0, i, 0, c);
  }
  Emulation e;
  e.name = "emulated/cast_f16";
  e.p_cast = static_cast<std::uint8_t>(1 + abi(DType::f16));
  const attest_kernel kernel = fixtures::emulated_kernel(e, p.dtype);
  const Truth truth(kernel.description, p, in, Direction::backward, 1);
  const KernelRun got = run(kernel, p, in, Direction::backward, Case{p, Values::normal, 1, 1});
  double squares = 0;  // of errors over their scale, were the casts independent
  for (std::int64_t j = 0; j < kRows; ++j) {
    double weights = 0;
    for (std::int64_t i = j; i < kRows; ++i) weights += std::pow(static_cast<double>(i + 1), -2);
    for (std::int64_t c = 0; c < kColumns; ++c) {
      const double scale = unit_roundoff(DType::f16) * std::sqrt(weights) * dO(0, 0, 0, c),
                   error = got.dV(0, j, 0, c) - truth.backward().dV(0, j, 0, c);
      squares += std::pow(error / scale, 2);
    }
  }
  CHECK(std::sqrt(squares / (kRows * kColumns)) > reference::kAggregateLimit);
  for (const Comparison& comparison : truth.judge(got)) {
    INFO(comparison.output << " " << comparison.aggregate);
    CHECK(comparison.verdict == Verdict::passed);
  }
}

TEST_CASE("the rows' errors of delta reach all of dK alike", "[validation]") {
  // Rounding O leaves one number per row in delta; with positive Q and flat P every element of dK
  // adds up the same 16 of them, and their root mean square is no average.
  const std::string text = "sq=16,d=16,dtype=bf16";
  const Problem p = Problem::parse(text);
  Emulation e;
  e.name = "emulated/plain";
  const attest_kernel kernel = fixtures::emulated_kernel(e, p.dtype);
  double ours = 0, without = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const InputValues in = make_values(p, Values::all_positive, seed);
    const Truth truth(kernel.description, p, in, Direction::backward, seed);
    const KernelRun got =
        run(kernel, p, in, Direction::backward, Case{p, Values::all_positive, seed, 1});
    const auto& bounds = truth.backward_bounds(got);
    const Tensor &Q = in.Q, &K = in.K, &O = truth.forward().O, &LSE = truth.forward().LSE;
    double squares = 0;
    for (std::int64_t j = 0; j < p.seqlen_k; ++j) {
      for (std::int64_t l = 0; l < p.head_dim_qk; ++l) {
        double shared = 0;
        for (std::int64_t i = 0; i < p.seqlen_q; ++i) {
          double score = 0, delta = 0;
          for (std::int64_t x = 0; x < p.head_dim_qk; ++x) score += Q(0, i, 0, x) * K(0, j, 0, x);
          for (std::int64_t x = 0; x < p.head_dim_v; ++x) {
            delta += in.dO(0, i, 0, x) * (got.O(0, i, 0, x) - O(0, i, 0, x));
          }
          shared += std::exp(p.scale() * score - LSE(0, 0, i)) * delta * Q(0, i, 0, l);
        }
        const double sigma = bounds.dK.sigma(0, j, 0, l) - p.scale() * std::abs(shared);
        squares += std::pow((got.dK(0, j, 0, l) - truth.backward().dK(0, j, 0, l)) / sigma, 2);
      }
    }
    const Comparison dK = compare(got.dK.view(), truth.backward().dK, bounds.dK);
    ours = std::max(ours, dK.aggregate);
    without = std::max(without, std::sqrt(squares / static_cast<double>(dK.elements)));
    CHECK(dK.verdict == Verdict::passed);
  }
  std::printf("rms of dK over sigma: without the shared error %.2f, with it %.2f\n", without, ours);
  CHECK(without > reference::kAggregateLimit);
}

// sigma with first-order errors only, without what the output's rounding adds to the error itself.
TEST_CASE("aggregates cover errors that are known and errors beyond first order", "[validation]") {
  struct Subject {
    const char* problem;
    Values values;
    std::uint64_t seed;
    const char* emulation;
  };
  for (const Subject& alarm :
       {Subject{"sq=256,sk=2,d=1,dtype=bf16", Values::duplicate_keys, 5757827, "emulated/cast_p"},
        Subject{"b=2,sq=7,sk=20,d=80,mask=lengths_20_11,dtype=bf16", Values::logits_1e4, 0,
                "emulated/cast_p_mma"}}) {
    const Problem p = Problem::parse(alarm.problem);
    const auto all = fixtures::legitimate_emulations(p.dtype);
    const auto emulation = std::find_if(
        all.begin(), all.end(), [&](const Emulation& one) { return one.name == alarm.emulation; });
    REQUIRE(emulation != all.end());
    const attest_kernel kernel = fixtures::emulated_kernel(*emulation, p.dtype);
    for (std::uint64_t seed = alarm.seed; seed < alarm.seed + 20; ++seed) {
      const InputValues in = make_values(p, alarm.values, seed);
      const Truth truth(kernel.description, p, in, Direction::backward, seed);
      const KernelRun got = run(kernel, p, in, Direction::backward, Case{p, alarm.values, seed, 2});
      INFO(alarm.problem << " " << seed);
      for (const Comparison& comparison : truth.judge(got)) {
        INFO(comparison.output << " " << comparison.aggregate);
        CHECK(comparison.verdict == Verdict::passed);
      }
    }
  }
}

// A float64 kernel at the end of its own bound, while the reference errs the other way: only both
// bounds together leave it alone, and nothing further out.
TEST_CASE("the reference's own error in float64", "[validation]") {
  const Problem problem = Problem::parse("sq=5,sk=7,d=3,dtype=f64,mask=causal_br");
  const attest_kernel& kernel = fixtures::defective_kernel(fixtures::Defect::none);
  const Case c{problem, Values::normal, 3, 1};
  const InputValues in = make_values(problem, c.values, c.seed);
  const Truth truth(kernel.description, problem, in, Direction::backward, c.seed);
  KernelRun shifted = run(kernel, problem, in, Direction::backward, c);
  const reference::ForwardBounds own =
      reference::forward_bounds(problem, {}, resolve(kernel.description.numerics, DType::f64),
                                in.Q.view(), in.K.view(), in.V.view(), truth.forward());
  const auto verdict = [&](double own_bounds) {
    for (std::int64_t e = 0; e < shifted.O.view().size(); ++e) {
      const double bound = own.O.deterministic.doubles()[e];
      shifted.O.doubles()[e] = truth.forward().O.doubles()[e] + own_bounds * bound;
    }
    return compare(shifted.O.view(), truth.forward().O, truth.forward_bounds().O).verdict;
  };
  CHECK(compare(run(kernel, problem, in, Direction::forward, c).O.view(), truth.forward().O,
                truth.forward_bounds().O)
            .verdict == Verdict::passed);
  CHECK(verdict(1.5) != Verdict::violated);  // refused by its own bound alone
  CHECK(verdict(2.5) == Verdict::violated);
}

}  // namespace
}  // namespace attest::proptest
