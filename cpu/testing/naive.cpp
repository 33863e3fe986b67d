#include "cpu/testing/naive.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace attest::cpu::testing {
namespace {

constexpr double kRoundoff = 0x1p-24;
constexpr double kExpError = 0x1p-22;       // 2 ulp, relative
constexpr double kTanhError = 4 * 0x1p-23;  // 4 ulp, relative
constexpr double kFlushed = 0x1p-126;       // what the exponential may lose
constexpr double kInfinity = std::numeric_limits<double>::infinity();

double gamma(double operations) { return operations * kRoundoff / (1 - operations * kRoundoff); }

// Rounding a result to its dtype.
double output_error(DType dtype, double magnitude) {
  switch (dtype) {
    case DType::bf16:
      return 0x1p-8 * magnitude + 0x1p-133;
    case DType::f16:
      return 0x1p-11 * magnitude + 0x1p-24;
    case DType::f32:
    case DType::f64:
      break;
  }
  return kRoundoff * magnitude + 0x1p-149;
}

struct Score {
  double value = -kInfinity, error = 0;
  double slope = 1, slope_error = 0;  // derivative of the softcap
};

struct Row {
  const Problem& problem;
  const Sequence& sequence;
  std::int64_t head, i;

  std::int64_t kv_head() const { return head / problem.group_size(); }
  std::int64_t q_row() const { return sequence.q_begin + i; }
  std::int64_t k_row(std::int64_t j) const { return sequence.k_begin + j; }
};

Score score(const Row& row, const NaiveInputs& in, std::int64_t j) {
  const Problem& p = row.problem;
  const std::int64_t b = row.sequence.tensor_batch;
  Score s;
  if (!p.mask.visible(row.sequence, row.i, j)) return s;
  if (!p.shows(row.sequence.number, row.head, row.i, j)) return s;
  double sum = 0, absolute = 0;
  for (std::int64_t c = 0; c < p.head_dim_qk; ++c) {
    const double term = in.Q(b, row.q_row(), row.head, c) * in.K(b, row.k_row(j), row.kv_head(), c);
    sum += term;
    absolute += std::abs(term);
  }
  s.value = p.scale() * sum;
  // The chain, the float32 scale and the multiplication by it.
  s.error = gamma(static_cast<double>(p.head_dim_qk) + 2) * std::abs(p.scale()) * absolute;
  if (p.softcap > 0) {
    const double t = std::tanh(s.value / p.softcap);
    // softcap as float32 twice, a division and a multiplication.
    const double t_error = s.error / p.softcap + (gamma(3) + kTanhError) * std::abs(t) +
                           gamma(3) * std::abs(s.value / p.softcap) * (1 - t * t);
    s.slope = 1 - t * t;
    s.slope_error = 2 * t_error + gamma(3);
    s.error = p.softcap * (t_error + gamma(2) * std::abs(t));
    s.value = p.softcap * t;
  }
  if (p.alibi != Alibi::none) {
    const double slope = p.alibi_slopes()[static_cast<std::size_t>(row.head)];
    const auto away = static_cast<double>(std::abs(p.mask.aligned_key(row.sequence, row.i) - j));
    s.value -= slope * away;
    s.error += gamma(2) * (std::abs(s.value) + 2 * slope * away);
  }
  return s;
}

// P = exp(S - LSE), directly or as exp(S - m) / l with a maximum m and a rounded l.
struct Weight {
  double P = 0, error = 0;
};

Weight weight(const Score& s, double lse) {
  if (s.value == -kInfinity) return {};
  const double P = std::exp(s.value - lse);
  return {P, P * std::expm1(s.error + kExpError + gamma(4) +
                            2 * kRoundoff * (std::abs(s.value - lse) + s.error)) +
                 kFlushed};
}

}  // namespace

NaiveForward naive_forward(const Problem& p, const NaiveInputs& in) {
  NaiveForward result{
      {Tensor("O", DType::f64, p.o_axes()), Tensor("O", DType::f64, p.o_axes())},
      {Tensor("LSE", DType::f64, p.lse_axes()), Tensor("LSE", DType::f64, p.lse_axes())}};
  for (const Sequence& sequence : p.sequences()) {
    const std::int64_t b = sequence.tensor_batch, n = sequence.k_length;
    for (std::int64_t head = 0; head < p.num_heads_q; ++head) {
      for (std::int64_t i = 0; i < sequence.q_length; ++i) {
        const Row row{p, sequence, head, i};
        std::vector<Score> scores;
        double maximum = -kInfinity, error = 0, size = 0;
        for (std::int64_t j = 0; j < n; ++j) {
          scores.push_back(score(row, in, j));
          if (scores.back().value == -kInfinity) continue;
          maximum = std::max(maximum, scores.back().value);
          error = std::max(error, scores.back().error);
          size = std::max(size, std::abs(scores.back().value));
        }
        if (maximum == -kInfinity) {
          result.LSE.value.set(-kInfinity, b, head, row.q_row());
          continue;
        }
        double sum = 0;
        for (const Score& s : scores) sum += std::exp(s.value - maximum);
        // Error of log P before normalising: the score, its difference to a maximum (which may be
        // that of any of n tiles, each time a difference of numbers up to `size`), an exponential
        // for each.
        const auto tiles = static_cast<double>(n) + 1;
        const double log_error =
            error + tiles * (2 * kRoundoff * (size + error) + kExpError + 2 * kRoundoff);
        const double sum_error = std::expm1(log_error) + gamma(static_cast<double>(n) + 16);
        const double lse = maximum + std::log(sum);
        result.LSE.value.set(lse, b, head, row.q_row());
        result.LSE.bound.set(2 * sum_error + gamma(4) * (std::abs(maximum) + std::abs(lse) + 1), b,
                             head, row.q_row());
        for (std::int64_t c = 0; c < p.head_dim_v; ++c) {
          double value = 0, absolute = 0, lost = 0;
          for (std::int64_t j = 0; j < n; ++j) {
            const double v = in.V(b, row.k_row(j), row.kv_head(), c);
            const double P = std::exp(scores[static_cast<std::size_t>(j)].value - lse);
            if (P == 0) continue;
            value += P * v;
            absolute += P * std::abs(v);
            lost += kFlushed * std::abs(v);
          }
          const double inner =
              (std::expm1(3 * sum_error) + gamma(2 * static_cast<double>(n) + 3)) * absolute + lost;
          result.O.value.set(value, b, row.q_row(), head, c);
          result.O.bound.set(inner + output_error(p.dtype, std::abs(value) + inner), b, row.q_row(),
                             head, c);
        }
      }
    }
  }
  return result;
}

NaiveBackward naive_backward(const Problem& p, const NaiveInputs& in, const TensorView& O,
                             const TensorView& LSE, Deltas deltas) {
  const auto zeros = [](const char* name, const std::vector<Axis>& axes) {
    return Bounded{Tensor(name, DType::f64, axes), Tensor(name, DType::f64, axes)};
  };
  NaiveBackward result{zeros("dQ", p.q_axes()), zeros("dK", p.k_axes()), zeros("dV", p.v_axes())};
  const double scale = p.scale();
  // Adds value and bound of one term of a sum of `terms`, `roundings` more on each.
  const auto add = [](Bounded& to, double terms, double value, double error, std::int64_t b,
                      std::int64_t row, std::int64_t head, std::int64_t c) {
    to.value.set(to.value(b, row, head, c) + value, b, row, head, c);
    to.bound.set(to.bound(b, row, head, c) + error + gamma(terms + 3) * (std::abs(value) + error),
                 b, row, head, c);
  };
  for (const Sequence& sequence : p.sequences()) {
    const std::int64_t b = sequence.tensor_batch;
    for (std::int64_t head = 0; head < p.num_heads_q; ++head) {
      for (std::int64_t i = 0; i < sequence.q_length; ++i) {
        const Row row{p, sequence, head, i};
        const double lse = LSE(b, head, row.q_row());
        double delta = 0, delta_size = 0;
        for (std::int64_t c = 0; c < p.head_dim_v; ++c) {
          const double term = in.dO(b, row.q_row(), head, c) * O(b, row.q_row(), head, c);
          delta += term;
          delta_size += std::abs(term);
        }
        const double dlse = in.dLSE.rank() > 0 ? in.dLSE(b, head, row.q_row()) : 0;
        delta -= dlse;
        delta_size += std::abs(dlse);
        const double dv_terms = static_cast<double>(p.head_dim_v) + 1;
        double delta_error = gamma(dv_terms + 16) * delta_size;
        if (deltas == Deltas::from_probabilities) {
          delta = delta_size = delta_error = 0;
          const auto k_terms = static_cast<double>(sequence.k_length);
          for (std::int64_t j = 0; j < sequence.k_length; ++j) {
            const Weight w = weight(score(row, in, j), lse);
            if (w.P == 0) continue;
            double dP = 0, dP_size = 0;
            for (std::int64_t c = 0; c < p.head_dim_v; ++c) {
              const double term =
                  in.dO(b, row.q_row(), head, c) * in.V(b, row.k_row(j), row.kv_head(), c);
              dP += term;
              dP_size += std::abs(term);
            }
            delta += w.P * dP;
            delta_size += w.P * dP_size;
            // The chain over columns, the product with P, the chain over keys.
            delta_error += w.error * dP_size + gamma(dv_terms + k_terms + 17) * w.P * dP_size;
          }
          delta -= dlse;
          delta_size += std::abs(dlse);
          delta_error += gamma(1) * (delta_size + delta_error);  // one subtraction
        }
        for (std::int64_t j = 0; j < sequence.k_length; ++j) {
          const Score s = score(row, in, j);
          if (s.value == -kInfinity) continue;
          const auto [P, P_error] = weight(s, lse);
          double dP = 0, dP_size = 0;
          const double q_terms = static_cast<double>(p.group_size() * sequence.q_length);
          for (std::int64_t c = 0; c < p.head_dim_v; ++c) {
            const double g = in.dO(b, row.q_row(), head, c);
            dP += g * in.V(b, row.k_row(j), row.kv_head(), c);
            dP_size += std::abs(g * in.V(b, row.k_row(j), row.kv_head(), c));
            add(result.dV, q_terms, P * g, P_error * std::abs(g), b, row.k_row(j), row.kv_head(),
                c);
          }
          const double inner = dP - delta;
          const double inner_error =
              gamma(dv_terms) * dP_size + delta_error + kRoundoff * (dP_size + delta_size);
          const double dS = P * inner * s.slope;
          const double reach = std::abs(inner) + inner_error;
          const double dS_error = (P_error * reach + P * inner_error) * (s.slope + s.slope_error) +
                                  P * std::abs(inner) * s.slope_error +
                                  gamma(3) * (P + P_error) * reach;
          for (std::int64_t c = 0; c < p.head_dim_qk; ++c) {
            const double q = scale * in.Q(b, row.q_row(), head, c);
            const double k = scale * in.K(b, row.k_row(j), row.kv_head(), c);
            add(result.dQ, static_cast<double>(sequence.k_length), dS * k, dS_error * std::abs(k),
                b, row.q_row(), head, c);
            add(result.dK, q_terms, dS * q, dS_error * std::abs(q), b, row.k_row(j), row.kv_head(),
                c);
          }
        }
      }
    }
  }
  for (Bounded* output : {&result.dQ, &result.dK, &result.dV}) {
    double* value = output->value.doubles();
    double* bound = output->bound.doubles();
    for (std::int64_t e = 0; e < output->value.view().size(); ++e) {
      bound[e] += output_error(p.dtype, std::abs(value[e]) + bound[e]);
    }
  }
  return result;
}

}  // namespace attest::cpu::testing
