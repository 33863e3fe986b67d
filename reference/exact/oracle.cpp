#include "reference/exact/oracle.hpp"

#include <cmath>
#include <cstdlib>
#include <utility>

namespace attest::reference::oracle {
namespace {

Real dot(const Array& a, std::int64_t a0, std::int64_t a1, std::int64_t a2, const Array& b,
         std::int64_t b1, std::int64_t b2, std::int64_t count) {
  Real sum = 0;
  for (std::int64_t l = 0; l < count; ++l) sum += a(a0, a1, a2, l) * b(a0, b1, b2, l);
  return sum;
}

}  // namespace

void for_each_row(const Problem& problem, const Array& Q, const Array& K,
                  const std::function<void(Row&)>& visit, const Moved& moved) {
  const auto slopes = problem.alibi_slopes(), sinks = problem.sink_scores();
  const Real scale = problem.scale();  // the double a kernel is given, not 1/sqrt(d)
  for (const Sequence& sequence : problem.sequences()) {
    for (std::int64_t h = 0; h < problem.num_heads_q; ++h) {
      for (std::int64_t i = 0; i < sequence.q_length; ++i) {
        Row row;
        row.sequence = sequence.number;
        row.index = i;
        row.first_key = sequence.k_begin;
        row.batch = sequence.tensor_batch;
        row.query = sequence.q_begin + i;
        row.query_head = h;
        row.kv_head = h / problem.group_size();
        const bool exists = i < sequence.queries();
        if (exists && !sinks.empty() && std::isfinite(sinks[static_cast<std::size_t>(h)])) {
          row.sink = sinks[static_cast<std::size_t>(h)] +
                     (moved.sinks != nullptr ? (*moved.sinks)(h) : Real(0));
        }
        for (std::int64_t j = 0; j < sequence.k_length; ++j) {
          const double given = problem.bias_at(sequence.number, h, i, j);
          if (!problem.mask.visible(sequence, i, j) || !problem.shows(sequence.number, h, i, j)) {
            continue;
          }
          const std::int64_t key = sequence.k_begin + j;
          const Real product =
              scale * dot(Q, row.batch, row.query, h, K, key, row.kv_head, problem.head_dim_qk);
          Real capped = product, slope = 1, alibi = 0;
          if (problem.softcap > 0) {
            const Real t = tanh(product / problem.softcap);
            capped = problem.softcap * t;
            slope = 1 - t * t;
          }
          if (!slopes.empty()) {
            const std::int64_t aligned = problem.mask.aligned_key(sequence, i);
            alibi = Real(slopes[static_cast<std::size_t>(h)]) * Real(std::abs(aligned - j));
          }
          row.keys.push_back(key);
          row.product.push_back(product);
          row.capped.push_back(capped);
          Real bias = given;
          if (moved.bias != nullptr) bias += element_of_bias(problem, row, key, *moved.bias);
          row.S.push_back(capped - alibi + bias);
          row.bias.push_back(bias);
          row.slope.push_back(slope);
        }
        if (!row.keys.empty() || row.sink) visit(row);
      }
    }
  }
}

Real normalize(std::vector<Real>& S, const std::optional<Real>& sink) {
  Real maximum = sink ? *sink : S[0];
  for (const Real& s : S) maximum = s > maximum ? s : maximum;
  Real sum = sink ? Real(exp(*sink - maximum)) : Real(0);
  for (Real& s : S) {
    s = exp(s - maximum);
    sum += s;
  }
  for (Real& s : S) s /= sum;
  return maximum + log(sum);
}

Array::Array(const std::vector<Axis>& axes) {
  std::size_t size = 1;
  for (std::size_t index = 0; index < axes.size(); ++index) {
    extents_[index] = axes[index].extent;
    size *= static_cast<std::size_t>(axes[index].extent);
  }
  values_.assign(size, Real(0));
}

Array::Array(const TensorView& view) {
  std::vector<Axis> axes;
  for (std::size_t index = 0; index < view.rank(); ++index) axes.push_back(view.axis(index));
  *this = Array(axes);
  for (std::int64_t a = 0; a < extents_[0]; ++a) {
    for (std::int64_t b = 0; b < extents_[1]; ++b) {
      for (std::int64_t c = 0; c < extents_[2]; ++c) {
        for (std::int64_t d = 0; d < extents_[3]; ++d) (*this)(a, b, c, d) = view(a, b, c, d);
      }
    }
  }
}

Forward forward(const Problem& problem, const Array& Q, const Array& K, const Array& V,
                const Moved& moved) {
  Forward result{Array(problem.o_axes()), Array(problem.lse_axes())};
  const auto visit = [&](Row& row) {
    result.LSE(row.batch, row.query_head, row.query) = normalize(row.S, row.sink);
    for (std::size_t k = 0; k < row.keys.size(); ++k) {
      for (std::int64_t c = 0; c < problem.head_dim_v; ++c) {
        result.O(row.batch, row.query, row.query_head, c) +=
            row.S[k] * V(row.batch, row.keys[k], row.kv_head, c);
      }
    }
  };
  for_each_row(problem, Q, K, visit, moved);
  return result;
}

Gradients backward(const Problem& problem, const Array& Q, const Array& K, const Array& V,
                   const Array& dO, const Array& dLSE) {
  Gradients result{Array(problem.q_axes()), Array(problem.k_axes()), Array(problem.v_axes()),
                   Array(problem.sinks_axes()), Array(problem.bias_axes())};
  const Real scale = problem.scale();
  for_each_row(problem, Q, K, [&](Row& row) {
    const Real LSE = normalize(row.S, row.sink);
    const std::int64_t b = row.batch, h = row.query_head, kv = row.kv_head;
    std::vector<Real> dP;
    Real delta = -dLSE(b, h, row.query);
    for (std::size_t k = 0; k < row.keys.size(); ++k) {
      dP.push_back(dot(dO, b, row.query, h, V, row.keys[k], kv, problem.head_dim_v));
      delta += row.S[k] * dP[k];
    }
    for (std::size_t k = 0; k < row.keys.size(); ++k) {
      const std::int64_t key = row.keys[k];
      if (problem.bias.kind != Bias::Kind::none) {
        element_of_bias(problem, row, key, result.dBias) += row.S[k] * (dP[k] - delta);
      }
      const Real dS = scale * row.slope[k] * row.S[k] * (dP[k] - delta);
      for (std::int64_t c = 0; c < problem.head_dim_v; ++c) {
        result.dV(b, key, kv, c) += row.S[k] * dO(b, row.query, h, c);
      }
      for (std::int64_t l = 0; l < problem.head_dim_qk; ++l) {
        result.dQ(b, row.query, h, l) += dS * K(b, key, kv, l);
        result.dK(b, key, kv, l) += dS * Q(b, row.query, h, l);
      }
    }
    if (row.sink) result.dSinks(h) -= exp(*row.sink - LSE) * delta;
  });
  return result;
}

Real functional(const Problem& problem, const Array& Q, const Array& K, const Array& V,
                const Array& dO, const Array& dLSE, const Moved& moved) {
  const Forward result = forward(problem, Q, K, V, moved);
  Real sum = 0;
  for (std::size_t e = 0; e < dO.values().size(); ++e) sum += dO.values()[e] * result.O.values()[e];
  for (std::size_t e = 0; e < dLSE.values().size(); ++e) {
    sum += dLSE.values()[e] * result.LSE.values()[e];
  }
  return sum;
}

namespace {

// f = softmax rows of A1 X A2^T, h = A3 Y and c = f h - E.
struct LossTerms {
  std::vector<std::vector<Real>> f;
  Array h, c;
};

LossTerms loss_terms(const Array& A1, const Array& A2, const Array& A3, const Array& E,
                     const Array& X, const Array& Y, std::int64_t n, std::int64_t d) {
  const std::vector<Axis> tall{{"seqlen", n, 0}, {"head_dim", d, 0}};
  LossTerms terms{{}, Array(tall), Array(tall)};
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t c = 0; c < d; ++c) {
      for (std::int64_t l = 0; l < d; ++l) terms.h(i, c) += A3(i, l) * Y(l, c);
    }
  }
  for (std::int64_t i = 0; i < n; ++i) {
    std::vector<Real> row(static_cast<std::size_t>(n), Real(0));
    for (std::int64_t j = 0; j < n; ++j) {
      for (std::int64_t l = 0; l < d; ++l) {
        for (std::int64_t m = 0; m < d; ++m) {
          row[static_cast<std::size_t>(j)] += A1(i, l) * X(l, m) * A2(j, m);
        }
      }
    }
    normalize(row);
    for (std::int64_t c = 0; c < d; ++c) {
      terms.c(i, c) = -E(i, c);
      for (std::int64_t j = 0; j < n; ++j) {
        terms.c(i, c) += row[static_cast<std::size_t>(j)] * terms.h(j, c);
      }
    }
    terms.f.push_back(std::move(row));
  }
  return terms;
}

}  // namespace

Real loss(const Array& A1, const Array& A2, const Array& A3, const Array& E, const Array& X,
          const Array& Y, std::int64_t seqlen, std::int64_t head_dim) {
  const LossTerms terms = loss_terms(A1, A2, A3, E, X, Y, seqlen, head_dim);
  Real total = 0;
  for (const Real& c : terms.c.values()) total += c * c / 2;
  return total;
}

LossGradients loss_gradient(const Array& A1, const Array& A2, const Array& A3, const Array& E,
                            const Array& X, const Array& Y, std::int64_t seqlen,
                            std::int64_t head_dim) {
  const LossTerms terms = loss_terms(A1, A2, A3, E, X, Y, seqlen, head_dim);
  const std::vector<Axis> square{{"head_dim", head_dim, 0}, {"head_dim", head_dim, 0}};
  LossGradients result{Array(square), Array(square)};
  for (std::int64_t i = 0; i < seqlen; ++i) {
    const std::vector<Real>& f = terms.f[static_cast<std::size_t>(i)];
    // dL/df_ij = c_i . h_j; the softmax turns it into f (dL/df - sum_l f_l dL/df_l).
    std::vector<Real> df;
    Real mean = 0;
    for (std::int64_t j = 0; j < seqlen; ++j) {
      Real sum = 0;
      for (std::int64_t c = 0; c < head_dim; ++c) sum += terms.c(i, c) * terms.h(j, c);
      mean += f[static_cast<std::size_t>(j)] * sum;
      df.push_back(sum);
    }
    for (std::int64_t j = 0; j < seqlen; ++j) {
      const Real weight = f[static_cast<std::size_t>(j)];
      const Real p = weight * (df[static_cast<std::size_t>(j)] - mean);
      for (std::int64_t l = 0; l < head_dim; ++l) {
        for (std::int64_t m = 0; m < head_dim; ++m) {
          result.dX(l, m) += A1(i, l) * p * A2(j, m);
          result.dY(l, m) += A3(j, l) * weight * terms.c(i, m);
        }
      }
    }
  }
  return result;
}

}  // namespace attest::reference::oracle
