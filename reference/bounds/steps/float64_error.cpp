#include "reference/bounds/steps/float64_error.hpp"

#include <limits>
#include <vector>

namespace attest::reference::oracle {
namespace {

constexpr double kUnit = 0x1p-53;
constexpr double kTiny = std::numeric_limits<double>::denorm_min();
// Units of kUnit: one ulp is at most two of them.
constexpr int kExpUnits = 2, kLogUnits = 2, kTanhUnits = 4;

Real magnitude(const Real& x) { return x < 0 ? Real(-x) : x; }
Real smaller(const Real& a, const Real& b) { return a < b ? a : b; }

class Gamma {
 public:
  explicit Gamma(Chains chains) : chains_(chains) {}
  Real operator()(std::int64_t terms) const {
    const Real x = Real(chains_ == Chains::actual ? terms : 1) * kUnit;
    return x / (1 - x);
  }

 private:
  Chains chains_;
};

// Per visible key of one row, and its sink behind them: probabilities and the relative errors of
// what the softmax makes.
struct RowError {
  std::vector<Real> P;
  std::vector<Real> score;   // |error of S|
  std::vector<Real> slope;   // |error of the softcap's derivative|, 0 without softcap
  std::vector<Real> weight;  // exp(theta_j) T: a weight over the sum of weights, sums apart
  Real maximum, maximum_error, log_total, LSE;
};

Real product_magnitude(const Array& a, std::int64_t a1, std::int64_t a2, const Array& b,
                       std::int64_t b1, std::int64_t b2, std::int64_t batch, std::int64_t count) {
  Real sum = 0;
  for (std::int64_t l = 0; l < count; ++l)
    sum += magnitude(a(batch, a1, a2, l) * b(batch, b1, b2, l));
  return sum;
}

// Softmax of scores that err by `error`: section "Softmax".
void softmax_errors(const std::vector<Real>& S, RowError& row) {
  row.P = S;
  row.maximum = S[0];
  row.maximum_error = 0;
  for (std::size_t k = 0; k < S.size(); ++k) {
    if (S[k] > row.maximum) row.maximum = S[k];
    if (row.score[k] > row.maximum_error) row.maximum_error = row.score[k];
  }
  row.LSE = normalize(row.P);
  Real total = 0;
  const Real exponential = Real(kExpUnits) * kUnit / (1 - Real(kExpUnits) * kUnit);
  for (std::size_t k = 0; k < S.size(); ++k) {
    const Real theta = row.score[k] + exponential +
                       kUnit * (row.maximum - S[k] + row.score[k] + row.maximum_error);
    row.weight.push_back(exp(theta));
    total += row.P[k] * row.weight[k];
  }
  for (Real& weight : row.weight) weight *= total;
  row.log_total = log(total);
}

RowError row_error(const Problem& problem, const Array& Q, const Array& K, const Row& row,
                   const Gamma& gamma) {
  const std::int64_t d = problem.head_dim_qk;
  const Real scale = magnitude(Real(problem.scale()));
  RowError result;
  for (std::size_t k = 0; k < row.keys.size(); ++k) {
    const std::int64_t key = row.keys[k];
    Real keys = 0;
    for (std::int64_t l = 0; l < d; ++l) keys += magnitude(K(row.batch, key, row.kv_head, l));
    Real error =
        gamma(d + 1) * scale *
            product_magnitude(Q, row.query, row.query_head, K, key, row.kv_head, row.batch, d) +
        kTiny * Real(d + 1) * (1 + scale + keys);
    Real slope = 0;
    if (problem.softcap > 0) {
      const Real cap = problem.softcap, t = magnitude(row.capped[k]) / cap;
      const Real shifted = smaller(error / cap, Real(2));
      const Real tanh_error =
          shifted + Real(2 + kTanhUnits) * kUnit * smaller(Real(1), t + shifted) + kTiny;
      error = cap * tanh_error * (1 + kUnit) + kUnit * cap * t + kTiny;
      slope = 2 * tanh_error + tanh_error * tanh_error + 4 * kUnit;
    }
    if (problem.alibi != Alibi::none) {
      const Real without_bias = row.S[k] - row.bias[k];
      error += kUnit * magnitude(row.capped[k] - without_bias);
      error += kUnit * (magnitude(without_bias) + error);
    }
    if (problem.bias.kind != Bias::Kind::none) error += kUnit * (magnitude(row.S[k]) + error);
    result.score.push_back(error);
    result.slope.push_back(slope);
  }
  std::vector<Real> S = row.S;
  if (row.sink) {
    S.push_back(*row.sink);
    result.score.push_back(0);
  }
  softmax_errors(S, result);
  return result;
}

void forward_error(const Problem& problem, const Array& V, const Row& row, const RowError& e,
                   const Gamma& gamma, AttentionError& result) {
  const auto n = static_cast<std::int64_t>(e.P.size());
  for (std::int64_t c = 0; c < problem.head_dim_v; ++c) {
    Real error = 0;
    for (std::size_t k = 0; k < row.keys.size(); ++k) {
      const Real value = magnitude(V(row.batch, row.keys[k], row.kv_head, c));
      error += e.P[k] * value * (e.weight[k] * (1 + gamma(2 * n + 1)) - 1);
      error += kTiny * (2 + value);
    }
    result.O(row.batch, row.query, row.query_head, c) = error;
  }
  Real error = e.log_total + gamma(n) + kTiny * Real(n);
  error += Real(kLogUnits) * kUnit * (magnitude(e.LSE - e.maximum) + e.maximum_error + error);
  error += kUnit * (magnitude(e.LSE) + error);
  result.LSE(row.batch, row.query_head, row.query) = error;
}

struct RowGradient {
  std::vector<Real> dP, dP_error;
  Real delta, delta_error;
};

RowGradient row_gradient(const Problem& problem, const Array& V, const Array& dO, const Array& dLSE,
                         const Row& row, const RowError& e, const Gamma& gamma) {
  const std::int64_t b = row.batch, h = row.query_head, dv = problem.head_dim_v;
  const auto n = static_cast<std::int64_t>(e.P.size());
  const Real& cotangent = dLSE(b, h, row.query);
  RowGradient result{{}, {}, -cotangent, gamma(n + 1) * magnitude(cotangent)};
  for (std::size_t k = 0; k < row.keys.size(); ++k) {
    Real dP = 0;
    for (std::int64_t c = 0; c < dv; ++c) {
      dP += dO(b, row.query, h, c) * V(b, row.keys[k], row.kv_head, c);
    }
    const Real error =
        gamma(dv) * product_magnitude(dO, row.query, h, V, row.keys[k], row.kv_head, b, dv) +
        kTiny * Real(dv);
    const Real factor = e.weight[k] * (1 + gamma(n)) * (1 + gamma(n + 1));
    result.delta += e.P[k] * dP;
    result.delta_error += e.P[k] * (magnitude(dP) * (factor - 1) + factor * error) +
                          kTiny * (2 + magnitude(dP) + error);
    result.dP.push_back(dP);
    result.dP_error.push_back(error);
  }
  return result;
}

void backward_error(const Problem& problem, const Array& Q, const Array& K, const Array& V,
                    const Array& dO, const Array& dLSE, const Row& row, const RowError& e,
                    const Gamma& gamma, AttentionError& result) {
  const std::int64_t b = row.batch, h = row.query_head, kv = row.kv_head;
  const auto n = static_cast<std::int64_t>(e.P.size());
  const std::int64_t rows = problem.group_size() * problem.seqlen_q;
  const Real scale = magnitude(Real(problem.scale()));
  const RowGradient g = row_gradient(problem, V, dO, dLSE, row, e, gamma);
  const Real of_bias =
      gamma(problem.batch * problem.num_heads_q * problem.seqlen_q * problem.seqlen_k);
  for (std::size_t k = 0; k < row.keys.size(); ++k) {
    const std::int64_t key = row.keys[k];
    const Real difference = magnitude(g.dP[k] - g.delta);
    const Real difference_error = g.dP_error[k] + g.delta_error;
    const Real p = e.weight[k] * (1 + gamma(n)), factor = p * (1 + gamma(4));
    if (problem.bias.kind != Bias::Kind::none) {
      const Real own = e.P[k] * (difference * (factor - 1) + factor * difference_error) +
                       kTiny * (2 + difference + difference_error);
      element_of_bias(problem, row, key, result.dBias) +=
          own * (1 + of_bias) + of_bias * e.P[k] * difference;
    }
    const Real dS = scale * e.P[k] * row.slope[k] * difference;
    const Real dS_error =
        dS * (factor - 1) +
        scale * e.P[k] * factor *
            (row.slope[k] * difference_error + (difference + difference_error) * e.slope[k]) +
        kTiny * (1 + scale) * (2 + difference + difference_error);
    for (std::int64_t l = 0; l < problem.head_dim_qk; ++l) {
      const Real key_entry = magnitude(K(b, key, kv, l));
      const Real query_entry = magnitude(Q(b, row.query, h, l));
      result.dQ(b, row.query, h, l) +=
          (dS_error * (1 + gamma(n)) + gamma(n) * dS) * key_entry + kTiny;
      result.dK(b, key, kv, l) +=
          (dS_error * (1 + gamma(rows)) + gamma(rows) * dS) * query_entry + kTiny;
    }
    for (std::int64_t c = 0; c < problem.head_dim_v; ++c) {
      const Real entry = magnitude(dO(b, row.query, h, c));
      result.dV(b, key, kv, c) +=
          e.P[k] * entry * (p * (1 + gamma(rows)) - 1) + kTiny * (2 + entry);
    }
  }
  if (!row.sink) return;
  // All rows of the head in all sequences add up.
  const Real all_rows = gamma(problem.batch * problem.seqlen_q);
  const Real size = magnitude(g.delta), factor = e.weight.back() * (1 + gamma(n)) * (1 + gamma(4));
  const Real own = e.P.back() * (size * (factor - 1) + factor * g.delta_error) +
                   kTiny * (2 + size + g.delta_error);
  result.dSinks(h) += own * (1 + all_rows) + all_rows * e.P.back() * size;
}

// One row of the loss gradient: a magnitude or a signed value, and its error, per column or key.
struct Measured {
  Real value = 0, error = 0;
};

struct LossInputs256 {
  const Array &A1, &A2, &A3, &E, &X;
  std::int64_t seqlen, head_dim;
};

// S = A1 X A2^T, then the weights' relative errors.
RowError loss_row_error(const LossInputs256& in, std::int64_t i, const Gamma& gamma) {
  std::vector<Real> S;
  RowError e;
  for (std::int64_t j = 0; j < in.seqlen; ++j) {
    Real s = 0, size = 0;
    for (std::int64_t l = 0; l < in.head_dim; ++l) {
      for (std::int64_t m = 0; m < in.head_dim; ++m) {
        const Real term = in.A1(i, l) * in.X(l, m) * in.A2(j, m);
        s += term;
        size += magnitude(term);
      }
    }
    S.push_back(s);
    e.score.push_back(gamma(2 * in.head_dim) * size);
  }
  softmax_errors(S, e);
  return e;
}

// c = f h - E per column, and delta = sum of c o (f h).
struct Residual {
  std::vector<Measured> c;
  Measured delta;
};

Residual residual_error(const LossInputs256& in, std::int64_t i, const Array& h,
                        const Array& h_error, const RowError& e, const Gamma& gamma) {
  Residual row;
  const Real sums = (1 + gamma(in.seqlen)) * (1 + gamma(in.seqlen));
  for (std::int64_t m = 0; m < in.head_dim; ++m) {
    Measured fh;
    for (std::int64_t j = 0; j < in.seqlen; ++j) {
      const auto k = static_cast<std::size_t>(j);
      const Real factor = e.weight[k] * sums;
      fh.value += e.P[k] * h(j, m);
      fh.error += e.P[k] * (magnitude(h(j, m)) * (factor - 1) + factor * h_error(j, m));
    }
    const Real difference = fh.value - in.E(i, m);
    const Measured c{difference, fh.error + kUnit * (magnitude(difference) + fh.error)};
    const Real size = magnitude(fh.value);
    row.c.push_back(c);
    row.delta.value += difference * fh.value;
    row.delta.error +=
        (magnitude(c.value) + c.error) * (size + fh.error) * (1 + gamma(in.head_dim)) -
        magnitude(c.value) * size;
  }
  return row;
}

// Adds row i's part of the errors of dX and dY.
void add_loss_row(const LossInputs256& in, std::int64_t i, const Array& h, const Array& h_error,
                  const RowError& e, const Residual& row, const Gamma& gamma, LossError& result) {
  const Real long_sum = gamma(2 * in.seqlen);
  for (std::int64_t j = 0; j < in.seqlen; ++j) {
    Measured q;
    for (std::int64_t m = 0; m < in.head_dim; ++m) {
      const Measured& c = row.c[static_cast<std::size_t>(m)];
      q.value += c.value * h(j, m);
      q.error += (magnitude(c.value) + c.error) * (magnitude(h(j, m)) + h_error(j, m)) *
                     (1 + gamma(in.head_dim)) -
                 magnitude(c.value * h(j, m));
    }
    const Real f = e.P[static_cast<std::size_t>(j)];
    const Real weight = e.weight[static_cast<std::size_t>(j)] * (1 + gamma(in.seqlen));
    const Real factor = weight * (1 + gamma(2));
    const Real p = f * magnitude(q.value - row.delta.value);
    const Real p_error = p * (factor - 1) + f * factor * (q.error + row.delta.error);
    for (std::int64_t l = 0; l < in.head_dim; ++l) {
      for (std::int64_t m = 0; m < in.head_dim; ++m) {
        const Measured& c = row.c[static_cast<std::size_t>(m)];
        result.dX(l, m) +=
            magnitude(in.A1(i, l) * in.A2(j, m)) * (p_error * (1 + long_sum) + long_sum * p);
        result.dY(l, m) +=
            magnitude(in.A3(j, l)) * f *
            ((magnitude(c.value) + c.error) * weight * (1 + long_sum) - magnitude(c.value));
      }
    }
  }
}

}  // namespace

AttentionError float64_error(const Problem& problem, const Array& Q, const Array& K, const Array& V,
                             const Array& dO, const Array& dLSE, Chains chains) {
  const Gamma gamma(chains);
  AttentionError result{Array(problem.o_axes()),   Array(problem.lse_axes()),
                        Array(problem.q_axes()),   Array(problem.k_axes()),
                        Array(problem.v_axes()),   Array(problem.sinks_axes()),
                        Array(problem.bias_axes())};
  for_each_row(problem, Q, K, [&](Row& row) {
    const RowError e = row_error(problem, Q, K, row, gamma);
    forward_error(problem, V, row, e, gamma, result);
    backward_error(problem, Q, K, V, dO, dLSE, row, e, gamma, result);
  });
  return result;
}

LossError loss_float64_error(const Array& A1, const Array& A2, const Array& A3, const Array& E,
                             const Array& X, const Array& Y, std::int64_t seqlen,
                             std::int64_t head_dim, Chains chains) {
  const std::int64_t n = seqlen, d = head_dim;
  const Gamma gamma(chains);
  const std::vector<Axis> tall{{"seqlen", n, 0}, {"head_dim", d, 0}};
  const std::vector<Axis> square{{"head_dim", d, 0}, {"head_dim", d, 0}};
  LossError result{0, Array(square), Array(square)};
  Array h(tall), h_error(tall);
  for (std::int64_t j = 0; j < n; ++j) {
    for (std::int64_t c = 0; c < d; ++c) {
      for (std::int64_t l = 0; l < d; ++l) {
        h(j, c) += A3(j, l) * Y(l, c);
        h_error(j, c) += gamma(d) * magnitude(A3(j, l) * Y(l, c));
      }
    }
  }
  const LossInputs256 in{A1, A2, A3, E, X, n, d};
  Real squares = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const RowError e = loss_row_error(in, i, gamma);
    const Residual row = residual_error(in, i, h, h_error, e, gamma);
    for (const Measured& c : row.c) {
      result.loss += magnitude(c.value) * c.error + c.error * c.error;
      squares += (magnitude(c.value) + c.error) * (magnitude(c.value) + c.error);
    }
    add_loss_row(in, i, h, h_error, e, row, gamma, result);
  }
  result.loss += gamma(n * d + 1) * squares;
  return result;
}

}  // namespace attest::reference::oracle
