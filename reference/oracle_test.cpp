// The float64 reference against 256-bit arithmetic, within its own derived bounds; the gradients
// also against directional finite differences.
#include "reference/oracle.hpp"

#include <cmath>
#include <cstdio>
#include <string>

#include "core/error.hpp"
#include "core/rng.hpp"
#include "core/testing/catch.hpp"
#include "reference/attention.hpp"
#include "reference/bounds.hpp"
#include "reference/loss_gradient.hpp"

namespace attest::reference {
namespace {

Tensor random_tensor(const char* name, std::vector<Axis> axes, std::uint64_t seed, double factor) {
  Tensor tensor(name, DType::f64, std::move(axes));
  Rng rng(seed);
  double* values = tensor.doubles();
  for (std::int64_t e = 0; e < tensor.view().size(); ++e) values[e] = factor * rng.normal();
  return tensor;
}

struct Setting {
  Problem problem;
  Tensor Q, K, V, dO, dLSE;

  Setting(const std::string& text, double q_factor, double v_factor, std::uint64_t seed)
      : problem(Problem::parse(text)),
        Q(random_tensor("Q", problem.q_axes(), seed, q_factor)),
        K(random_tensor("K", problem.k_axes(), seed + 1, 1)),
        V(random_tensor("V", problem.v_axes(), seed + 2, v_factor)),
        dO(random_tensor("dO", problem.o_axes(), seed + 3, 1)),
        dLSE(random_tensor("dLSE", problem.lse_axes(), seed + 4, 1)) {}

  Cotangents cotangents() const { return {dO.view(), &dLSE.view()}; }
};

// The reference is a kernel whose contract is float64 throughout.
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
    const double error =
        abs(oracle::Real(got.doubles()[e]) - exact.values()[e]).convert_to<double>();
    if (error == 0) continue;
    const double ratio = error / bound.doubles()[e];
    worst = ratio <= worst ? worst : ratio;
  }
  return worst;
}

const std::vector<std::string>& feature_problems() {
  static const std::vector<std::string> problems{
      "b=2,hq=4,hkv=2,sq=7,sk=9,d=5,dv=3",
      "hq=3,hkv=1,sq=9,sk=7,d=4,dv=6,mask=causal_br",
      "hq=2,sq=6,sk=9,d=4,mask=causal_tl,scale=-0.7",
      "b=2,sq=6,sk=8,d=4,mask=lengths_5_8+window_2_1",
      "hq=2,hkv=1,d=4,mask=cu_3x5_0x4_4x2_2x0+causal_br",
      "sq=8,sk=8,d=3,mask=random_40_3,softcap=2",
      "hq=4,sq=6,sk=10,d=4,mask=causal_br,alibi=standard",
      "hq=4,hkv=2,sq=6,sk=6,d=4,softcap=1.5,alibi=standard,scale=0.9",
      "sq=5,sk=6,d=4,scale=0",
      "sq=1,sk=33,d=8",
      "sq=64,sk=40,d=2,dv=1"};
  return problems;
}

TEST_CASE("reference forward and backward against 256-bit arithmetic", "[oracle]") {
  double worst_forward = 0, worst_backward = 0, worst_single = 0;
  std::uint64_t seed = 1;
  for (const std::string& text : feature_problems()) {
    for (const double q_factor : {1.0, 1e-3, 30.0, 1e4}) {
      for (const double v_factor : {1.0, 1e6, 1e-300}) {
        INFO(text << " q*" << q_factor << " v*" << v_factor);
        const Setting in(text, q_factor, v_factor, seed += 10);
        const Forward got = forward(in.problem, {}, in.Q.view(), in.K.view(), in.V.view());
        const Backward gradients =
            backward(in.problem, in.Q.view(), in.K.view(), in.V.view(), in.cotangents());
        const oracle::Array Q(in.Q.view()), K(in.K.view()), V(in.V.view()), dO(in.dO.view()),
            dLSE(in.dLSE.view());
        const auto exact = oracle::forward(in.problem, Q, K, V);
        const auto exact_gradients = oracle::backward(in.problem, Q, K, V, dO, dLSE);
        const auto bounds = forward_bounds(in.problem, {}, double_precision(), in.Q.view(),
                                           in.K.view(), in.V.view(), got);
        const auto single = forward_bounds(in.problem, {}, resolve({}, DType::f32), in.Q.view(),
                                           in.K.view(), in.V.view(), got);
        const auto gradient_bounds =
            backward_bounds(in.problem, {}, double_precision(), in.Q.view(), in.K.view(),
                            in.V.view(), in.cotangents(), {got.O.view(), got.LSE.view()}, got);
        // Rows without a visible key are -inf by convention and have no error.
        Forward finite = got;
        double* lse = finite.LSE.doubles();
        for (std::int64_t e = 0; e < finite.LSE.view().size(); ++e) {
          if (std::isinf(lse[e])) lse[e] = 0;
        }
        const double o = worst_ratio(got.O, exact.O, bounds.O.deterministic);
        const double l = worst_ratio(finite.LSE, exact.LSE, bounds.LSE.deterministic);
        const double dq =
            worst_ratio(gradients.dQ, exact_gradients.dQ, gradient_bounds.dQ.deterministic);
        const double dk =
            worst_ratio(gradients.dK, exact_gradients.dK, gradient_bounds.dK.deterministic);
        const double dv =
            worst_ratio(gradients.dV, exact_gradients.dV, gradient_bounds.dV.deterministic);
        CHECK(o <= 1);
        CHECK(l <= 1);
        CHECK(dq <= 1);
        CHECK(dk <= 1);
        CHECK(dv <= 1);
        worst_forward = std::max({worst_forward, o, l});
        worst_backward = std::max({worst_backward, dq, dk, dv});
        worst_single = std::max({worst_single, worst_ratio(got.O, exact.O, single.O.deterministic),
                                 worst_ratio(finite.LSE, exact.LSE, single.LSE.deterministic)});
      }
    }
  }
  std::printf(
      "reference error / float64 bound: forward %.3f, backward %.3f; / f32 bound, forward: %.2e\n",
      worst_forward, worst_backward, worst_single);
}

// (f(x + h v) - f(x - h v)) / 2h for a direction in all of Q, K, V, and <gradient, v>.
struct Directional {
  oracle::Real difference, predicted;
};

Directional directional(const Problem& problem, const Setting& in, const oracle::Gradients& g) {
  using oracle::Array;
  const oracle::Real h = pow(oracle::Real(2), -80);
  Array plus[3] = {Array(in.Q.view()), Array(in.K.view()), Array(in.V.view())};
  Array minus[3] = {plus[0], plus[1], plus[2]};
  const Array* gradient[3] = {&g.dQ, &g.dK, &g.dV};
  Directional result;
  Rng rng(99);
  for (int t = 0; t < 3; ++t) {
    for (std::size_t e = 0; e < plus[t].values().size(); ++e) {
      const double direction = rng.normal();
      plus[t].values()[e] += h * direction;
      minus[t].values()[e] -= h * direction;
      result.predicted += gradient[t]->values()[e] * direction;
    }
  }
  const Array dO(in.dO.view()), dLSE(in.dLSE.view());
  result.difference = (oracle::functional(problem, plus[0], plus[1], plus[2], dO, dLSE) -
                       oracle::functional(problem, minus[0], minus[1], minus[2], dO, dLSE)) /
                      (2 * h);
  return result;
}

// Truncation is h^2 = 2^-160 times third derivatives, rounding 2^-256 / h = 2^-176 times the
// functional; both are far below 2^-100 of the gradient for scores and values of order one.
bool agrees(const Directional& d) {
  return abs(d.difference - d.predicted) <= pow(oracle::Real(2), -100) * (1 + abs(d.predicted));
}

TEST_CASE("gradients of the oracle against finite differences", "[oracle]") {
  std::uint64_t seed = 500;
  for (const std::string& text : feature_problems()) {
    INFO(text);
    const Setting in(text, 1, 1, seed += 10);
    const oracle::Array Q(in.Q.view()), K(in.K.view()), V(in.V.view()), dO(in.dO.view()),
        dLSE(in.dLSE.view());
    CHECK(agrees(directional(in.problem, in, oracle::backward(in.problem, Q, K, V, dO, dLSE))));
  }
}

TEST_CASE("finite differences refuse a gradient without delta", "[oracle]") {
  const Setting in("sq=5,sk=6,d=3", 1, 1, 7);
  const oracle::Array Q(in.Q.view()), K(in.K.view()), V(in.V.view()), dO(in.dO.view()),
      dLSE(in.dLSE.view());
  auto wrong = oracle::backward(in.problem, Q, K, V, dO, dLSE);
  const auto without =
      oracle::backward(in.problem, Q, K, V, dO, oracle::Array(in.problem.lse_axes()));
  wrong.dQ = without.dQ;
  CHECK_FALSE(agrees(directional(in.problem, in, wrong)));
}

TEST_CASE("loss gradient against finite differences of the loss", "[oracle]") {
  const std::int64_t n = 7, d = 3;
  const std::vector<Axis> tall{{"seqlen", n, 0}, {"head_dim", d, 0}};
  const std::vector<Axis> square{{"head_dim", d, 0}, {"head_dim", d, 0}};
  const Tensor A1 = random_tensor("A1", tall, 1, 1), A2 = random_tensor("A2", tall, 2, 1),
               A3 = random_tensor("A3", tall, 3, 1), E = random_tensor("E", tall, 4, 1),
               X = random_tensor("X", square, 5, 1), Y = random_tensor("Y", square, 6, 1);
  const LossGradient got =
      loss_gradient({A1.view(), A2.view(), A3.view(), E.view(), X.view(), Y.view()});
  using oracle::Array;
  using oracle::Real;
  const Array a1(A1.view()), a2(A2.view()), a3(A3.view()), e(E.view()), x(X.view()), y(Y.view());
  const Real h = pow(Real(2), -80);
  const auto loss_at = [&](const Array& at_x, const Array& at_y) {
    return oracle::loss(a1, a2, a3, e, at_x, at_y, n, d);
  };
  // Every sum has at most n*d terms of magnitude at most the loss's own; a float64 evaluation of
  // seven nested sums stays within this multiple of 2^-53.
  const double scale = 1 + got.loss;
  const double allowed = static_cast<double>(7 * n * d) * unit_roundoff(DType::f64) *
                         static_cast<double>(n * d) * scale;
  CHECK(abs(loss_at(x, y) - Real(got.loss)).convert_to<double>() <= allowed);
  for (std::int64_t i = 0; i < d; ++i) {
    for (std::int64_t j = 0; j < d; ++j) {
      Array up = x, down = x, up_y = y, down_y = y;
      up(i, j) += h, down(i, j) -= h, up_y(i, j) += h, down_y(i, j) -= h;
      const Real dx = (loss_at(up, y) - loss_at(down, y)) / (2 * h);
      const Real dy = (loss_at(x, up_y) - loss_at(x, down_y)) / (2 * h);
      CHECK(abs(dx - Real(got.dX(i, j))).convert_to<double>() <= allowed);
      CHECK(abs(dy - Real(got.dY(i, j))).convert_to<double>() <= allowed);
    }
  }
}

TEST_CASE("rows without a visible key follow the convention", "[reference]") {
  const Setting in("sq=3,sk=2,d=2,mask=causal_br", 1, 1, 3);
  const auto at = [&](EmptyRow convention) {
    Conventions conventions;
    conventions.empty_row = convention;
    return forward(in.problem, conventions, in.Q.view(), in.K.view(), in.V.view());
  };
  CHECK(at(EmptyRow::zero_neg_inf).O(0, 0, 0, 1) == 0);
  CHECK(at(EmptyRow::zero_neg_inf).LSE(0, 0, 0) == -INFINITY);
  CHECK(at(EmptyRow::zero_pos_inf).LSE(0, 0, 0) == INFINITY);
  CHECK(std::isnan(at(EmptyRow::nan).O(0, 0, 0, 0)));
  CHECK(std::isnan(at(EmptyRow::nan).LSE(0, 0, 0)));
  const Backward gradients =
      backward(in.problem, in.Q.view(), in.K.view(), in.V.view(), in.cotangents());
  CHECK(gradients.dQ(0, 0, 0, 0) == 0);
}

TEST_CASE("LSE in base two", "[reference]") {
  const Setting in("sq=2,sk=4,d=2,scale=0", 1, 1, 3);
  Conventions conventions;
  conventions.lse_base = LseBase::two;
  const Forward got = forward(in.problem, conventions, in.Q.view(), in.K.view(), in.V.view());
  CHECK(std::abs(got.LSE(0, 0, 0) - 2) <= 4 * unit_roundoff(DType::f64));
}

TEST_CASE("shapes that do not match are refused by name", "[reference]") {
  const Setting in("sq=3,sk=4,d=2", 1, 1, 3), other("sq=3,sk=5,d=2", 1, 1, 3);
  CHECK_THROWS_WITH(forward(in.problem, {}, in.Q.view(), other.K.view(), in.V.view()),
                    "K: seqlen_k is 5, but the problem needs 4");
  CHECK_THROWS_AS(
      backward(in.problem, in.Q.view(), in.K.view(), in.V.view(), {other.K.view(), nullptr}),
      InvalidProblem);
}

}  // namespace
}  // namespace attest::reference
