// The float64 reference against 256-bit arithmetic: within the error that an analysis of the
// algorithm allows on these very inputs, and within the bounds of a kernel that claims float64.
#include "reference/exact/oracle.hpp"

#include <cmath>
#include <cstdio>
#include <functional>
#include <string>

#include "core/testing/catch.hpp"
#include "reference/bounds/bounds.hpp"
#include "reference/bounds/steps/float64_error.hpp"
#include "reference/testing/setting.hpp"

namespace attest::reference {
namespace {

struct Worst {
  double allowed = 0;    // error / proved error
  double condition = 0;  // error / (2^-53 x condition)
  double single = 0;     // error / (2^-24 x condition)
};

double larger(double a, double b) { return std::isnan(a) || b <= a ? a : b; }  // NaN wins

// Rows without a visible key have no exact value; their conventions are tested elsewhere.
void compare(const Tensor& got, const oracle::Array& exact, const oracle::Array& allowed,
             const oracle::Array& condition, Worst& worst) {
  using oracle::Real;
  for (std::size_t e = 0; e < exact.values().size(); ++e) {
    const double value = got.doubles()[e];
    if (std::isinf(value) && allowed.values()[e] == 0) continue;
    const Real error = abs(Real(value) - exact.values()[e]);
    if (error == 0) continue;
    worst.allowed = larger(worst.allowed, Real(error / allowed.values()[e]).convert_to<double>());
    const double relative = Real(error / condition.values()[e]).convert_to<double>();
    worst.condition = larger(worst.condition, relative);
    worst.single =
        larger(worst.single, relative * unit_roundoff(DType::f64) / unit_roundoff(DType::f32));
  }
}

struct Judgement {
  Worst O, LSE, dQ, dK, dV, dSinks, dBias;

  double worst_allowed() const {
    double worst = 0;
    for (const Worst* output : {&O, &LSE, &dQ, &dK, &dV, &dSinks, &dBias}) {
      worst = larger(worst, output->allowed);
    }
    return worst;
  }
};

struct Results {
  Forward forward;
  Backward backward;
};

Results evaluate(const Setting& in) {
  return {forward(in.problem, {}, in.Q.view(), in.K.view(), in.V.view()),
          backward(in.problem, in.Q.view(), in.K.view(), in.V.view(), in.cotangents())};
}

void judge(const Setting& in, const Results& got, Judgement& judgement) {
  const ExactInputs exact(in);
  const auto forward = oracle::forward(in.problem, exact.Q, exact.K, exact.V);
  const auto backward =
      oracle::backward(in.problem, exact.Q, exact.K, exact.V, exact.dO, exact.dLSE);
  const auto error_with = [&](oracle::Chains chains) {
    return oracle::float64_error(in.problem, exact.Q, exact.K, exact.V, exact.dO, exact.dLSE,
                                 chains);
  };
  const auto allowed = error_with(oracle::Chains::actual);
  const auto condition = error_with(oracle::Chains::one);
  compare(got.forward.O, forward.O, allowed.O, condition.O, judgement.O);
  compare(got.forward.LSE, forward.LSE, allowed.LSE, condition.LSE, judgement.LSE);
  compare(got.backward.dQ, backward.dQ, allowed.dQ, condition.dQ, judgement.dQ);
  compare(got.backward.dK, backward.dK, allowed.dK, condition.dK, judgement.dK);
  compare(got.backward.dV, backward.dV, allowed.dV, condition.dV, judgement.dV);
  compare(got.backward.dSinks, backward.dSinks, allowed.dSinks, condition.dSinks, judgement.dSinks);
  compare(got.backward.dBias, backward.dBias, allowed.dBias, condition.dBias, judgement.dBias);
}

// Values that trouble a softmax in floating point, each with its reason.
struct Adversary {
  const char* name;
  double q_factor, v_factor;
  std::function<void(Setting&)> change;
};

void each(Tensor& tensor, const std::function<double(std::int64_t, double)>& change) {
  double* values = tensor.doubles();
  for (std::int64_t e = 0; e < tensor.view().size(); ++e) values[e] = change(e, values[e]);
}

const std::vector<Adversary>& adversaries() {
  const auto nothing = [](Setting&) {};
  static const std::vector<Adversary> list{
      {"normal", 1, 1, nothing},
      {"nearly uniform P", 0x1p-20, 1, nothing},
      {"one-hot P", 30, 1, nothing},
      {"logits of 1e4", 1e4, 1, nothing},
      {"large V", 1, 1e6, nothing},
      {"tiny V, products in the denormals", 1, 1e-300, nothing},
      {"denormal Q and V", 0x1p-1040, 0x1p-1060, nothing},
      {"cancelling V: +-1e8 in turn", 0x1p-10, 1,
       [](Setting& in) {
         each(in.V, [](std::int64_t e, double v) { return v + (e % 2 == 0 ? 1e8 : -1e8); });
       }},
      {"equal keys: all scores of a row alike", 3, 1,
       [](Setting& in) {
         const std::int64_t d = in.problem.head_dim_qk;
         each(in.K, [&](std::int64_t e, double) { return static_cast<double>(e % d) - 1; });
       }},
      {"all logits far below zero", 1, 1,
       [](Setting& in) {
         each(in.Q, [](std::int64_t, double q) { return std::abs(q) + 5; });
         each(in.K, [](std::int64_t, double k) { return -std::abs(k) - 5; });
       }},
      {"P - delta cancels: one value for all keys", 1, 1,
       [](Setting& in) { each(in.V, [](std::int64_t, double) { return 1.0 / 3; }); }},
      {"zero Q and dO", 0, 1,
       [](Setting& in) { each(in.dO, [](std::int64_t, double) { return 0.0; }); }}};
  return list;
}

void print(const char* output, const Worst& worst) {
  std::printf("  %-6s %10.3f %22.2f %22.2e\n", output, worst.allowed, worst.condition,
              worst.single);
}

TEST_CASE("reference against 256-bit arithmetic", "[oracle]") {
  Judgement total;
  std::uint64_t seed = 1;
  for (const std::string& text : feature_problems()) {
    for (const Adversary& adversary : adversaries()) {
      INFO(text << ", " << adversary.name);
      Setting in(text, adversary.q_factor, adversary.v_factor, seed += 10);
      adversary.change(in);
      Judgement judgement;
      judge(in, evaluate(in), judgement);
      CHECK(judgement.O.allowed <= 1);
      CHECK(judgement.LSE.allowed <= 1);
      CHECK(judgement.dQ.allowed <= 1);
      CHECK(judgement.dK.allowed <= 1);
      CHECK(judgement.dV.allowed <= 1);
      CHECK(judgement.dSinks.allowed <= 1);
      CHECK(judgement.dBias.allowed <= 1);
      for (const auto& [sum, one] :
           {std::pair(&total.O, &judgement.O), std::pair(&total.LSE, &judgement.LSE),
            std::pair(&total.dQ, &judgement.dQ), std::pair(&total.dK, &judgement.dK),
            std::pair(&total.dV, &judgement.dV), std::pair(&total.dSinks, &judgement.dSinks),
            std::pair(&total.dBias, &judgement.dBias)}) {
        sum->allowed = larger(sum->allowed, one->allowed);
        sum->condition = larger(sum->condition, one->condition);
        sum->single = larger(sum->single, one->single);
      }
    }
  }
  std::printf("worst error of the float64 reference over %zu problems x %zu families\n",
              feature_problems().size(), adversaries().size());
  std::printf("  %-6s %10s %22s %22s\n", "", "/ proved", "/ (2^-53 condition)",
              "/ (2^-24 condition)");
  print("O", total.O);
  print("LSE", total.LSE);
  print("dQ", total.dQ);
  print("dK", total.dK);
  print("dV", total.dV);
  print("dSinks", total.dSinks);
  print("dBias", total.dBias);
}

// Defects of the kind the comparison is there for, each far smaller than one unit of float32.
TEST_CASE("the comparison refuses a reference that is slightly wrong", "[oracle]") {
  const Setting in("hq=4,hkv=2,sq=7,sk=9,d=5,mask=causal_br,sinks=drawn_3,bias=hk_drawn_5", 1, 1,
                   77);
  const auto refused = [&](const std::function<void(Results&)>& spoil) {
    Results got = evaluate(in);
    spoil(got);
    Judgement judgement;
    judge(in, got, judgement);
    return !(judgement.worst_allowed() <= 1);
  };
  CHECK_FALSE(refused([](Results&) {}));
  const double slip = 0x1p-40;
  CHECK(refused(
      [&](Results& r) { each(r.forward.O, [&](auto, double x) { return x * (1 + slip); }); }));
  CHECK(
      refused([&](Results& r) { each(r.forward.LSE, [&](auto, double x) { return x + slip; }); }));
  CHECK(refused(
      [&](Results& r) { each(r.backward.dQ, [&](auto, double x) { return x * (1 + slip); }); }));
  CHECK(refused(
      [&](Results& r) { each(r.backward.dK, [&](auto, double x) { return x * (1 + slip); }); }));
  CHECK(refused(
      [&](Results& r) { each(r.backward.dV, [&](auto, double x) { return x * (1 + slip); }); }));
  CHECK(refused([](Results& r) { each(r.backward.dV, [](auto, double) { return NAN; }); }));
  CHECK(refused([&](Results& r) {
    each(r.backward.dSinks, [&](auto, double x) { return x * (1 + slip); });
  }));
  CHECK(refused(
      [&](Results& r) { each(r.backward.dBias, [&](auto, double x) { return x * (1 + slip); }); }));
  CHECK(refused([&](Results& r) {
    r.backward =
        backward(in.problem, in.Q.view(), in.K.view(), in.V.view(), {in.dO.view(), nullptr});
  }));
}

// The reference is itself a kernel whose contract is float64 throughout.
Numerics double_precision() {
  Numerics numerics;
  numerics.accumulator_roundoff = unit_roundoff(DType::f64);
  numerics.output_roundoff = unit_roundoff(DType::f64);
  numerics.output_underflow = underflow_unit(DType::f64);
  return numerics;
}

// Largest |got - exact| / bound; an element outside a zero bound gives infinity.
double worst_ratio(const Tensor& got, const oracle::Array& exact, const Tensor& bound) {
  double worst = 0;
  for (std::size_t e = 0; e < exact.values().size(); ++e) {
    const double value = got.doubles()[e];
    if (std::isinf(value) && exact.values()[e] == 0) continue;
    const double error = abs(oracle::Real(value) - exact.values()[e]).convert_to<double>();
    if (error != 0) worst = larger(worst, error / bound.doubles()[e]);
  }
  return worst;
}

TEST_CASE("the reference keeps the bounds of a float64 kernel", "[oracle]") {
  double forward_ratio = 0, backward_ratio = 0;
  std::uint64_t seed = 1;
  for (const std::string& text : feature_problems()) {
    for (const double q_factor : {1.0, 1e-3, 30.0, 1e4}) {
      INFO(text << " q*" << q_factor);
      const Setting in(text, q_factor, 1, seed += 10);
      const Results got = evaluate(in);
      const ExactInputs inputs(in);
      const auto exact = oracle::forward(in.problem, inputs.Q, inputs.K, inputs.V);
      const auto gradients =
          oracle::backward(in.problem, inputs.Q, inputs.K, inputs.V, inputs.dO, inputs.dLSE);
      const auto f = forward_bounds(in.problem, {}, double_precision(), in.Q.view(), in.K.view(),
                                    in.V.view(), got.forward);
      const auto b =
          backward_bounds(in.problem, {}, double_precision(), in.Q.view(), in.K.view(), in.V.view(),
                          in.cotangents(), {got.forward.O.view(), got.forward.LSE.view()},
                          got.forward, got.backward);
      const double forward_worst =
          larger(worst_ratio(got.forward.O, exact.O, f.O.deterministic),
                 worst_ratio(got.forward.LSE, exact.LSE, f.LSE.deterministic));
      const double backward_worst =
          larger(worst_ratio(got.backward.dQ, gradients.dQ, b.dQ.deterministic),
                 larger(worst_ratio(got.backward.dBias, gradients.dBias, b.dBias.deterministic),
                        larger(worst_ratio(got.backward.dK, gradients.dK, b.dK.deterministic),
                               worst_ratio(got.backward.dV, gradients.dV, b.dV.deterministic))));
      CHECK(forward_worst <= 1);
      CHECK(backward_worst <= 1);
      forward_ratio = larger(forward_ratio, forward_worst);
      backward_ratio = larger(backward_ratio, backward_worst);
    }
  }
  std::printf("reference error / bound of a float64 kernel: forward %.3f, backward %.3f\n",
              forward_ratio, backward_ratio);
}

}  // namespace
}  // namespace attest::reference
