#include "reference/exact/attention.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "reference/group.hpp"
#include "reference/threads.hpp"

namespace attest::reference {
namespace {

// Rows per block: the block's scores stay near the cache and memory stays linear in seqlen_q.
constexpr std::int64_t kBlockRows = 128;

// Row blocks whose key gradients are added up apart, when there are too few groups to share out.
// The number must not depend on the threads, or the last bits of dK and dV would.
constexpr std::int64_t kSlices = 8;

// Consecutive stacked rows of one group.
struct Block {
  std::size_t group;
  std::int64_t first, count;
};

std::vector<Block> blocks_of(const std::vector<Group>& groups) {
  std::vector<Block> blocks;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (std::int64_t first = 0; first < groups[g].rows(); first += kBlockRows) {
      blocks.push_back({g, first, std::min(kBlockRows, groups[g].rows() - first)});
    }
  }
  return blocks;
}

// Every group whole when they are many, otherwise in up to kSlices runs of whole blocks.
std::vector<Block> slices_of(const std::vector<Group>& groups) {
  const std::int64_t parts = groups.size() >= static_cast<std::size_t>(kSlices) ? 1 : kSlices;
  std::vector<Block> slices;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const std::int64_t rows = groups[g].rows();
    const std::int64_t blocks = (rows + kBlockRows - 1) / kBlockRows;
    const std::int64_t step = std::max<std::int64_t>(1, (blocks + parts - 1) / parts) * kBlockRows;
    for (std::int64_t first = 0; first < rows; first += step) {
      slices.push_back({g, first, std::min(step, rows - first)});
    }
  }
  return slices;
}

double lse_of(double maximum, double sum, LseBase base) {
  const double natural = maximum + std::log(sum);
  return base == LseBase::e ? natural : natural * std::numbers::log2e;
}

void fill_empty_row(EmptyRow convention, Matrix& O, Eigen::Index row, double& lse) {
  const EmptyRowValues values = values_of(convention);
  O.row(row).setConstant(values.O);
  lse = values.LSE;
}

void check_inputs(const Problem& problem, const TensorView& Q, const TensorView& K,
                  const TensorView& V) {
  problem.validate();
  require_shape(Q, "Q", problem.q_axes());
  require_shape(K, "K", problem.k_axes());
  require_shape(V, "V", problem.v_axes());
}

struct KeyGradients {
  Matrix dK, dV;
  Vector dSinks;  // of each head of the group; none without sinks
  Tensor dBias;   // what the rows add to it; of no element where each row has its own
};

// dS before the softcap, from P and dP, in the place of dP. Entries of zero weight (masked, or
// underflowed) are skipped: their dP may be NaN.
void score_gradient(const Matrix& P, const Eigen::Ref<const Vector>& dLSE, Matrix& dP) {
  for (Eigen::Index r = 0; r < P.rows(); ++r) {
    double delta = -dLSE(r);
    for (Eigen::Index j = 0; j < P.cols(); ++j) {
      if (P(r, j) != 0) delta += P(r, j) * dP(r, j);
    }
    for (Eigen::Index j = 0; j < P.cols(); ++j) {
      dP(r, j) = P(r, j) != 0 ? P(r, j) * (dP(r, j) - delta) : 0.0;
    }
  }
}

void multiply_by_slope(const Scores& block, Matrix& dS) {
  if (block.slope.size() == 0) return;
  for (Eigen::Index r = 0; r < dS.rows(); ++r) {
    for (Eigen::Index j = 0; j < dS.cols(); ++j) {
      if (block.S(r, j) != 0) dS(r, j) *= block.slope(r, j);
    }
  }
}

void add_to_bias(const Problem& problem, const Group& group, std::int64_t first, const Matrix& dS,
                 Tensor& dBias) {
  const auto at = [&](std::size_t axis, std::int64_t index) {
    return problem.bias.axes[axis] ? index : 0;
  };
  const std::int64_t b = at(0, group.sequence.number);
  for (Eigen::Index r = 0; r < dS.rows() && dBias.view().size() > 0; ++r) {
    const std::int64_t h = at(1, group.query_head(first + r)), i = at(2, group.query(first + r));
    for (std::int64_t j = 0; j < group.sequence.k_length; ++j) {
      if (dS(r, j) != 0) dBias.set(dBias(b, h, i, at(3, j)) + dS(r, j), b, h, i, at(3, j));
    }
  }
}

// Largest errors of the rows' delta: docs/theory/reference.md, "Delta". P is normalised; keys of no
// weight may hold anything.
Vector delta_errors(const Problem& problem, const Group& group, std::int64_t first, const Matrix& P,
                    const Matrix& Q, const Matrix& K, const Matrix& V, const Matrix& dO,
                    const Eigen::Ref<const Vector>& dLSE) {
  constexpr double kUnit = 0x1p-53;
  constexpr double kLargestLog = 745;  // of a weight that is not 0, negative
  const auto n = static_cast<double>(K.rows()), d = static_cast<double>(problem.head_dim_qk),
             dv = static_cast<double>(problem.head_dim_v);
  const double distance =
      problem.alibi == Alibi::none ? 0 : static_cast<double>(problem.seqlen_q + problem.seqlen_k);
  const auto size_of_bias = [&](std::int64_t r, std::int64_t j) {
    const bool of_key = problem.bias.kind != Bias::Kind::none && j < group.sequence.k_length;
    return of_key ? std::abs(problem.bias_at(group.sequence.number, group.query_head(first + r),
                                             group.query(first + r), j))
                  : 0.0;
  };
  const double sums = 2 * n + dv + 2 * (kLargestLog + 4), scores = 2 * (d + 8);
  const Vector keys = K.rowwise().norm(), values = V.rowwise().norm();
  Vector errors(P.rows());
  for (Eigen::Index r = 0; r < P.rows(); ++r) {
    const double query = std::abs(problem.scale()) * Q.row(r).norm();
    double terms = 0;
    for (Eigen::Index j = 0; j < P.cols(); ++j) {
      if (P(r, j) == 0) continue;
      terms +=
          P(r, j) * values(j) * (sums + scores * (query * keys(j) + distance + size_of_bias(r, j)));
    }
    errors(r) = kUnit * (dO.row(r).norm() * terms + n * std::abs(dLSE(r)));
  }
  return errors;
}

// Divides by the row sums. A row with a NaN score is NaN in every key it sees and 0 in the others,
// where 0 / NaN would spread it to keys that the row has nothing to do with.
void normalize(const Problem& problem, const Group& group, std::int64_t first, const Vector& sum,
               Matrix& P) {
  for (Eigen::Index r = 0; r < P.rows(); ++r) {
    if (std::isnan(sum(r))) {
      for (Eigen::Index j = 0; j < P.cols(); ++j) {
        const bool sink = j == group.sequence.k_length;
        const std::int64_t query = group.query(first + r);
        if (sink ||
            (problem.mask.visible(group.sequence, query, j) &&
             problem.head_mask(group.sequence.number, group.query_head(first + r), query, j))) {
          P(r, j) = sum(r);
        }
      }
    } else if (sum(r) != 0) {
      P.row(r) /= sum(r);
    }
  }
}

void add_elements(const Tensor& from, Tensor& to) {
  double* const sums = to.doubles();
  const double* const terms = from.doubles();
  for (std::int64_t e = 0; e < to.view().size(); ++e) sums[e] += terms[e];
}

struct BackwardInputs {
  const Problem& problem;
  const TensorView &Q, &K, &V;
  const Cotangents& cotangents;
};

// The rows of one slice: writes their dQ and what their delta errs, returns their share of the
// group's dK and dV.
KeyGradients backward_slice(const BackwardInputs& in, const Group& group, const Block& slice,
                            Backward& result) {
  const Matrix K = key_rows(in.K, group), V = key_rows(in.V, group);
  Vector dLSE = Vector::Zero(group.rows());
  if (in.cotangents.dLSE != nullptr) dLSE = stacked_scalars(*in.cotangents.dLSE, group);
  const std::array<bool, 4>& axes = in.problem.bias.axes;
  const bool own_rows = axes[0] && axes[1] && axes[2];
  KeyGradients sums{
      Matrix::Zero(K.rows(), K.cols()), Matrix::Zero(V.rows(), V.cols()),
      Vector::Zero(group.sinks * group.group_size),
      Tensor("dBias", DType::f64, own_rows ? Problem{}.bias_axes() : in.problem.bias_axes())};
  for (std::int64_t done = 0; done < slice.count; done += kBlockRows) {
    const std::int64_t first = slice.first + done;
    const std::int64_t count = std::min(kBlockRows, slice.count - done);
    const Matrix Q = stacked_rows(in.Q, group, first, count);
    const Matrix dO = stacked_rows(in.cotangents.dO, group, first, count);
    Scores block = scores(in.problem, group, first, Q, K);
    Matrix& P = block.S;
    const RowStatistics statistics = exponentiate(P);
    normalize(in.problem, group, first, statistics.sum, P);
    sums.dV += transposed_weighted_sum(P, dO);
    const Vector errors =
        delta_errors(in.problem, group, first, P, Q, K, V, dO, dLSE.segment(first, count));
    for (std::int64_t r = 0; r < count; ++r) {
      result.delta_error.set(errors(r), group.sequence.tensor_batch, group.query_head(first + r),
                             group.sequence.q_begin + group.query(first + r));
    }
    Matrix dS = dO * V.transpose();
    score_gradient(P, dLSE.segment(first, count), dS);
    for (std::int64_t r = 0; r < count && group.sinks > 0; ++r) {
      sums.dSinks((first + r) / group.queries()) += dS(r, group.sequence.k_length);
    }
    add_to_bias(in.problem, group, first, dS, own_rows ? result.dBias : sums.dBias);
    multiply_by_slope(block, dS);
    dS *= in.problem.scale();
    scatter_rows(weighted_sum(dS, K), group, first, result.dQ);
    sums.dK += transposed_weighted_sum(dS, Q);
  }
  return sums;
}

}  // namespace

Forward forward(const Problem& problem, const Conventions& conventions, const TensorView& Q,
                const TensorView& K, const TensorView& V, const PositionsInSequences* queries) {
  check_inputs(problem, Q, K, V);
  Forward result{Tensor("O", DType::f64, problem.o_axes()),
                 Tensor("LSE", DType::f64, problem.lse_axes())};
  const std::vector<Group> groups = groups_of(problem, queries);
  const std::vector<Block> blocks = blocks_of(groups);
  const bool threads = worth_threads(2 * score_operations(groups, problem.head_dim_qk));
#pragma omp parallel for schedule(dynamic) if (threads)
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    const auto [index, first, count] = blocks[b];
    const Group& group = groups[index];
    Matrix P =
        scores(problem, group, first, stacked_rows(Q, group, first, count), key_rows(K, group)).S;
    const RowStatistics statistics = exponentiate(P);
    Matrix O = weighted_sum(P, key_rows(V, group));
    for (std::int64_t r = 0; r < count; ++r) {
      double lse = lse_of(statistics.maximum(r), statistics.sum(r), conventions.lse_base);
      O.row(r) /= statistics.sum(r);
      if (statistics.sum(r) == 0) fill_empty_row(conventions.empty_row, O, r, lse);
      result.LSE.set(lse, group.sequence.tensor_batch, group.query_head(first + r),
                     group.sequence.q_begin + group.query(first + r));
    }
    scatter_rows(O, group, first, result.O);
  }
  return result;
}

Backward backward(const Problem& problem, const TensorView& Q, const TensorView& K,
                  const TensorView& V, const Cotangents& cotangents,
                  const PositionsInSequences* queries) {
  check_inputs(problem, Q, K, V);
  require_shape(cotangents.dO, "dO", problem.o_axes());
  if (cotangents.dLSE != nullptr) require_shape(*cotangents.dLSE, "dLSE", problem.lse_axes());
  Backward result{Tensor("dQ", DType::f64, problem.q_axes()),
                  Tensor("dK", DType::f64, problem.k_axes()),
                  Tensor("dV", DType::f64, problem.v_axes()),
                  Tensor("dSinks", DType::f64, problem.sinks_axes()),
                  Tensor("dBias", DType::f64, problem.bias_axes()),
                  Tensor("delta_error", DType::f64, problem.lse_axes())};
  const BackwardInputs inputs{problem, Q, K, V, cotangents};
  const std::vector<Group> groups = groups_of(problem, queries);
  const std::vector<Block> slices = slices_of(groups);
  std::vector<KeyGradients> shares(slices.size());
  const bool threads = worth_threads(5 * score_operations(groups, problem.head_dim_qk));
#pragma omp parallel for schedule(dynamic) if (threads)
  for (std::size_t s = 0; s < slices.size(); ++s) {
    shares[s] = backward_slice(inputs, groups[slices[s].group], slices[s], result);
  }
  for (std::size_t s = 0; s < slices.size(); ++s) {
    if (shares[s].dBias.view().size() > 0) add_elements(shares[s].dBias, result.dBias);
    if (slices[s].first == 0) {
      KeyGradients& sum = shares[s];
      for (std::size_t t = s + 1; t < slices.size() && slices[t].group == slices[s].group; ++t) {
        sum.dK += shares[t].dK;
        sum.dV += shares[t].dV;
        sum.dSinks += shares[t].dSinks;
      }
      const Group& group = groups[slices[s].group];
      for (Eigen::Index h = 0; h < sum.dSinks.size(); ++h) {
        const std::int64_t head = group.kv_head * group.group_size + h;
        result.dSinks.set(result.dSinks.view()(head) + sum.dSinks(h), head);
      }
      scatter_key_rows(sum.dK, groups[slices[s].group], result.dK);
      scatter_key_rows(sum.dV, groups[slices[s].group], result.dV);
    }
  }
  return result;
}

}  // namespace attest::reference
