// Gradients against directional central differences of <dO, O> + <dLSE, LSE> in 256-bit arithmetic.
#include <array>
#include <string>

#include "core/testing/catch.hpp"
#include "reference/bounds/steps/float64_error.hpp"
#include "reference/testing/setting.hpp"

namespace attest::reference {
namespace {

using oracle::Array;
using oracle::Real;

const Real kStep = pow(Real(2), -67);       // 7e-21
const Real kRoundoff = pow(Real(2), -256);  // of the oracle

// A direction in all of Q, K, V, the sinks and the bias, and what the functional does along it.
struct Directional {
  std::array<Array, 5> direction;
  Real derivative;  // central difference
  Real tolerance;   // its own error
};

Real functional_at(const Problem& problem, const ExactInputs& in, const Directional& along,
                   const Real& step) {
  std::array<Array, 5> moved{in.Q, in.K, in.V, Array(problem.sinks_axes()),
                             Array(problem.bias_axes())};
  for (std::size_t t = 0; t < 5; ++t) {
    for (std::size_t e = 0; e < moved[t].values().size(); ++e) {
      moved[t].values()[e] += step * along.direction[t].values()[e];
    }
  }
  return oracle::functional(
      problem, moved[0], moved[1], moved[2], in.dO, in.dLSE,
      {&moved[3], problem.bias.kind == Bias::Kind::none ? nullptr : &moved[4]});
}

// The largest magnitude the functional's terms can add up to, and of its scores.
Real magnitude_of(const Problem& problem, const ExactInputs& in) {
  ExactInputs absolute = in;
  for (Array* array : {&absolute.V, &absolute.dO}) {
    for (Real& value : array->values()) value = abs(value);
  }
  const auto terms = oracle::forward(problem, in.Q, in.K, absolute.V);
  Real sum = 1;
  for (std::size_t e = 0; e < terms.O.values().size(); ++e) {
    sum += absolute.dO.values()[e] * terms.O.values()[e];
  }
  for (std::size_t e = 0; e < terms.LSE.values().size(); ++e) {
    sum += abs(in.dLSE.values()[e] * terms.LSE.values()[e]);
  }
  Real largest_score = 1;
  oracle::for_each_row(problem, in.Q, in.K, [&](oracle::Row& row) {
    for (const Real& s : row.product)
      largest_score = abs(s) > largest_score ? abs(s) : largest_score;
  });
  return sum * largest_score;
}

// D(h) = f' + h^2 f'''/6 + O(h^4), so D(2h) - D(h) = h^2 f'''/2 + O(h^4): three times the
// truncation of D(h). Rounding moves each of the two values of the functional by at most the number
// of operations in a row of dependent ones times the roundoff of its terms' magnitudes, over 2h.
Directional difference(const Problem& problem, const ExactInputs& in, std::uint64_t seed) {
  Directional along;
  along.direction = {in.Q, in.K, in.V, Array(problem.sinks_axes()), Array(problem.bias_axes())};
  Rng rng(seed);
  for (Array& array : along.direction) {
    for (Real& value : array.values()) value = rng.normal();
  }
  const auto central = [&](const Real& step) -> Real {
    return (functional_at(problem, in, along, step) - functional_at(problem, in, along, -step)) /
           (2 * step);
  };
  along.derivative = central(kStep);
  const std::int64_t operations = problem.head_dim_qk + 2 * problem.tensor_seqlen_k() +
                                  static_cast<std::int64_t>(in.dO.values().size()) + 16;
  along.tolerance = abs(central(2 * kStep) - along.derivative) +
                    Real(operations) * kRoundoff * magnitude_of(problem, in) / kStep;
  return along;
}

Real predicted(const std::array<const Array*, 5>& gradient, const Directional& along) {
  Real sum = 0;
  for (std::size_t t = 0; t < 5; ++t) {
    for (std::size_t e = 0; e < gradient[t]->values().size(); ++e) {
      sum += gradient[t]->values()[e] * along.direction[t].values()[e];
    }
  }
  return sum;
}

// Tells whether gradients, known within `error` element by element, agree with the difference.
bool agrees(const std::array<const Array*, 5>& gradient, const std::array<const Array*, 5>& error,
            const Directional& along) {
  Real allowed = along.tolerance;
  for (std::size_t t = 0; t < 5; ++t) {
    for (std::size_t e = 0; e < error[t]->values().size(); ++e) {
      allowed += error[t]->values()[e] * abs(along.direction[t].values()[e]);
    }
  }
  return abs(predicted(gradient, along) - along.derivative) <= allowed;
}

struct Errors {
  Array dQ, dK, dV, dSinks, dBias;
  std::array<const Array*, 5> pointers() const { return {&dQ, &dK, &dV, &dSinks, &dBias}; }
};

Errors exact_errors(const Problem& problem) {
  return {Array(problem.q_axes()), Array(problem.k_axes()), Array(problem.v_axes()),
          Array(problem.sinks_axes()), Array(problem.bias_axes())};
}

TEST_CASE("gradients of the oracle against finite differences", "[finite_difference]") {
  std::uint64_t seed = 500;
  for (const std::string& text : feature_problems()) {
    for (const double q_factor : {1.0, 8.0}) {
      INFO(text << " q*" << q_factor);
      const ExactInputs in(Setting(text, q_factor, 1, seed += 10));
      const Problem problem = Problem::parse(text);
      const auto g = oracle::backward(problem, in.Q, in.K, in.V, in.dO, in.dLSE);
      CHECK(agrees({&g.dQ, &g.dK, &g.dV, &g.dSinks, &g.dBias}, exact_errors(problem).pointers(),
                   difference(problem, in, seed)));
    }
  }
}

TEST_CASE("gradients of the reference against finite differences", "[finite_difference]") {
  std::uint64_t seed = 900;
  for (const std::string& text : feature_problems()) {
    INFO(text);
    const Setting setting(text, 1, 1, seed += 10);
    const ExactInputs in(setting);
    const Problem& problem = setting.problem;
    const Backward got = backward(problem, setting.Q.view(), setting.K.view(), setting.V.view(),
                                  setting.cotangents());
    const Array dQ(got.dQ.view()), dK(got.dK.view()), dV(got.dV.view()), dSinks(got.dSinks.view()),
        dBias(got.dBias.view());
    const auto error =
        oracle::float64_error(problem, in.Q, in.K, in.V, in.dO, in.dLSE, oracle::Chains::actual);
    CHECK(agrees({&dQ, &dK, &dV, &dSinks, &dBias},
                 {&error.dQ, &error.dK, &error.dV, &error.dSinks, &error.dBias},
                 difference(problem, in, seed)));
  }
}

// dS = P o dP, the gradient of a softmax without its normalisation.
oracle::Gradients without_delta(const Problem& problem, const ExactInputs& in) {
  oracle::Gradients result{Array(problem.q_axes()), Array(problem.k_axes()),
                           Array(problem.v_axes()), Array(problem.sinks_axes()),
                           Array(problem.bias_axes())};
  result.dV = oracle::backward(problem, in.Q, in.K, in.V, in.dO, in.dLSE).dV;
  oracle::for_each_row(problem, in.Q, in.K, [&](oracle::Row& row) {
    oracle::normalize(row.S, row.sink);
    for (std::size_t k = 0; k < row.keys.size(); ++k) {
      Real dP = 0;
      for (std::int64_t c = 0; c < problem.head_dim_v; ++c) {
        dP += in.dO(row.batch, row.query, row.query_head, c) *
              in.V(row.batch, row.keys[k], row.kv_head, c);
      }
      const Real dS = problem.scale() * row.slope[k] * row.S[k] * dP;
      for (std::int64_t l = 0; l < problem.head_dim_qk; ++l) {
        result.dQ(row.batch, row.query, row.query_head, l) +=
            dS * in.K(row.batch, row.keys[k], row.kv_head, l);
        result.dK(row.batch, row.keys[k], row.kv_head, l) +=
            dS * in.Q(row.batch, row.query, row.query_head, l);
      }
    }
  });
  return result;
}

TEST_CASE("finite differences refuse wrong gradients", "[finite_difference]") {
  const Setting setting("hq=2,hkv=1,sq=5,sk=6,d=3,softcap=3,sinks=drawn_3", 1, 1, 7);
  const ExactInputs in(setting);
  const Problem& problem = setting.problem;
  const Directional along = difference(problem, in, 7);
  const auto right = oracle::backward(problem, in.Q, in.K, in.V, in.dO, in.dLSE);
  const auto error =
      oracle::float64_error(problem, in.Q, in.K, in.V, in.dO, in.dLSE, oracle::Chains::actual);
  // The wider allowance of the float64 reference, so that both checks above are seen to refuse.
  const auto accepted = [&](const oracle::Gradients& g) {
    return agrees({&g.dQ, &g.dK, &g.dV, &g.dSinks, &g.dBias},
                  {&error.dQ, &error.dK, &error.dV, &error.dSinks, &error.dBias}, along);
  };
  REQUIRE(accepted(right));
  CHECK_FALSE(accepted(without_delta(problem, in)));
  CHECK_FALSE(
      accepted(oracle::backward(problem, in.Q, in.K, in.V, in.dO, Array(problem.lse_axes()))));
  auto zero = right;
  for (Real& value : zero.dV.values()) value = 0;
  CHECK_FALSE(accepted(zero));
  auto slip = right;
  for (Real& value : slip.dK.values()) value *= 1 + pow(Real(2), -36);
  CHECK_FALSE(accepted(slip));
  auto of_sinks = right;
  for (Real& value : of_sinks.dSinks.values()) value *= 1 + pow(Real(2), -36);
  CHECK_FALSE(accepted(of_sinks));
}

TEST_CASE("finite differences refuse a wrong gradient of a bias", "[finite_difference]") {
  const Setting setting("hq=2,hkv=1,sq=5,sk=6,d=3,softcap=3,bias=hk_drawn_5", 1, 1, 7);
  const ExactInputs in(setting);
  const Problem& problem = setting.problem;
  const Directional along = difference(problem, in, 7);
  auto right = oracle::backward(problem, in.Q, in.K, in.V, in.dO, in.dLSE);
  const auto error =
      oracle::float64_error(problem, in.Q, in.K, in.V, in.dO, in.dLSE, oracle::Chains::actual);
  const auto accepted = [&] {
    return agrees({&right.dQ, &right.dK, &right.dV, &right.dSinks, &right.dBias},
                  {&error.dQ, &error.dK, &error.dV, &error.dSinks, &error.dBias}, along);
  };
  REQUIRE(accepted());
  for (Real& value : right.dBias.values()) value *= 1 + pow(Real(2), -36);
  CHECK_FALSE(accepted());
}

}  // namespace
}  // namespace attest::reference
