// Simpler bounds that look plausible refuse kernels that keep their contract. Each is kept here, is
// seen to give its false alarm, and ours is seen not to (docs/theory/error-bounds.md, "False
// alarms").
#include <cmath>

#include "core/testing/catch.hpp"
#include "fixtures/emulated/emulation.hpp"
#include "proptest/truth.hpp"
#include "reference/roundoff.hpp"

namespace attest::proptest {
namespace {

using fixtures::Emulation;
using reference::kLambda;

constexpr double u = 0x1p-24;

struct Judged {
  KernelRun run;
  std::vector<Comparison> comparisons;
};

Judged judged(const Emulation& emulation, const Problem& p, const InputValues& in,
              Direction direction) {
  const attest_kernel kernel = fixtures::emulated_kernel(emulation, p.dtype);
  const Case c{p, Values::normal, 2, 1};
  const Truth truth(kernel.description, p, in, direction, c.seed);
  KernelRun got = run(kernel, p, in, direction, c);
  return {got, truth.judge(got)};
}

bool accepted(const Judged& judgement) {
  return gravest(judgement.comparisons).verdict == Verdict::passed;
}

double fill_all(Tensor& tensor, double value) {
  double* data = tensor.doubles();
  for (std::int64_t e = 0; e < tensor.view().size(); ++e) data[e] = value;
  return value;
}

TEST_CASE("false alarm: LSE bound through a clipped -log(1 - Se)", "[false_alarms]") {
  // Low-precision scaled Q: weights may be off by a large factor. -log(1 - Se) does not exist for
  // Se >= 1; clipped, it forbids what log1p(Se) rightly allows.
  const Problem p = Problem::parse("sq=16,sk=32,d=80,dtype=bf16");
  const InputValues in = make_values(p, Values::logits_1e4, 3);
  Emulation e;
  e.name = "rounded scale";
  e.scale = fixtures::ScalePlace::rounded_into_q;
  const Judged judgement = judged(e, p, in, Direction::forward);
  const Comparison& lse = judgement.comparisons[1];
  constexpr double kClip = 0.5;
  const double simple = -std::log(1 - kClip);
  const double error = std::abs(lse.got - lse.exact);
  CHECK(lse.bound > simple);  // Se is past the clip
  CHECK(error > simple);
  CHECK(accepted(judgement));
}

TEST_CASE("false alarm: flushing bound of dS without the factor dP - delta", "[false_alarms]") {
  // One key has all the weight, the other's P is subnormal and flushed; dP - delta is 10^6.
  const Problem p = Problem::parse("sq=1,sk=2,d=1,scale=1");
  InputValues in = make_values(p, Values::ones, 1);
  fill_all(in.Q, 1);
  in.K.set(0, 0, 0, 0, 0);
  in.K.set(-87.5, 0, 1, 0, 0);  // exp(-87.5) = 2^-126.2
  in.V.set(0, 0, 0, 0, 0);
  in.V.set(0x1p20, 0, 1, 0, 0);
  fill_all(in.dO, 1);
  fill_all(in.dLSE, 0);
  Emulation e;
  e.name = "flushing";
  e.flush = 1;
  const Judged judgement = judged(e, p, in, Direction::backward);
  const Comparison& dK = judgement.comparisons[3];
  const double simple = 2 * 0x1p-126;
  CHECK(std::abs(dK.got - dK.exact) > simple);
  CHECK(accepted(judgement));
}

TEST_CASE("false alarm: a random walk for coherent additions", "[false_alarms]") {
  // Many equal keys after one larger one, one addition after another: every rounding of the running
  // sum goes the same way within a binade.
  const Problem p = Problem::parse("sq=1,sk=16384,d=1,scale=1");
  InputValues in = make_values(p, Values::ones, 1);
  fill_all(in.Q, 1);
  fill_all(in.K, -0.3);
  in.K.set(0, 0, 0, 0, 0);
  Emulation e;
  e.name = "row streamed";
  e.block_k = 1;
  e.summation = fixtures::Summation::sequential;
  e.exponential = fixtures::ExpForm::natural;
  const Judged judgement = judged(e, p, in, Direction::forward);
  const Comparison& lse = judgement.comparisons[1];
  const double n = 16384;
  // lambda sqrt(n) u for the additions, with the exponential's and the last operations' errors.
  const double simple = kLambda * std::sqrt(n) * u;
  INFO("error " << std::abs(lse.got - lse.exact) << " simple " << simple << " ours " << lse.bound);
  CHECK(std::abs(lse.got - lse.exact) > simple);
  CHECK(accepted(judgement));
}

TEST_CASE("false alarm: independent roundings of equal weights", "[false_alarms]") {
  // 4096 equal P below the largest are cast to bf16 all alike; adding their errors as if they were
  // independent allows a 64th.
  const Problem p = Problem::parse("sq=1,sk=4096,d=1,scale=1,dtype=bf16");
  InputValues in = make_values(p, Values::ones, 1);
  fill_all(in.Q, 1);
  // exp(-0.00390625 * k) that bf16 rounds far: P relative to the first key's 1.
  fill_all(in.K, -0.498046875);
  in.K.set(0, 0, 0, 0, 0);
  Emulation e;
  e.name = "cast";
  e.p_cast = 1 + ATTEST_BF16;
  const Judged judgement = judged(e, p, in, Direction::forward);
  const Comparison& O = judgement.comparisons[0];
  const double n = 4096, up = 0x1p-8, P = std::exp(-0.498046875);
  const double weight = P / (1 + (n - 1) * P);
  const double simple = kLambda * up * weight * std::sqrt(n);
  const double cast_error = std::abs(
      static_cast<double>(float_from_bf16(bf16_from_float(static_cast<float>(P)))) / P - 1);
  INFO("cast error " << cast_error << " simple " << simple << " ours " << O.bound);
  CHECK(cast_error > simple);
  CHECK(accepted(judgement));
}

TEST_CASE("false alarm: an aggregate over elements that round alike", "[false_alarms]") {
  // Equal weights and V = 1: every row adds the same 130 numbers, so that all elements carry one
  // error, and their root mean square is no average. Normalising P first makes it large.
  const Problem p = Problem::parse("hq=2,sq=130,d=80,scale=0");
  const InputValues in = make_values(p, Values::ones, 1);
  Emulation e;
  e.name = "normalized";
  e.normalized = 1;
  e.block_k = 130;
  e.summation = fixtures::Summation::sequential;
  const Judged judgement = judged(e, p, in, Direction::forward);
  const Comparison& O = judgement.comparisons[0];
  const double n = 130;
  const double simple = std::sqrt(n) * u;  // what a random walk deviates
  CHECK(std::abs(O.got - O.exact) > simple);
  CHECK(accepted(judgement));
}

}  // namespace
}  // namespace attest::proptest
