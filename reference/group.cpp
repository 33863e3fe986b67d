#include "reference/group.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/error.hpp"

namespace attest::reference {
namespace {

constexpr double kMasked = -std::numeric_limits<double>::infinity();

void apply_softcap(double softcap, Scores& result) {
  Matrix& S = result.S;
  result.slope = Matrix(S.rows(), S.cols());
  for (Eigen::Index i = 0; i < S.rows(); ++i) {
    for (Eigen::Index j = 0; j < S.cols(); ++j) {
      const double t = std::tanh(S(i, j) / softcap);
      S(i, j) = softcap * t;
      // 1 - tanh^2 loses everything to cancellation once tanh is near 1; (1-t)(1+t) does not.
      result.slope(i, j) = (1 - t) * (1 + t);
    }
  }
}

std::int64_t keys_in(const Group& group, const std::vector<std::int64_t>* keys) {
  return keys != nullptr ? static_cast<std::int64_t>(keys->size()) : group.keys();
}

std::int64_t key_at(std::int64_t number, const std::vector<std::int64_t>* keys) {
  return keys != nullptr ? (*keys)[static_cast<std::size_t>(number)] : number;
}

// The sink's column, where it is one of these. A row past the query length has no sink.
void set_sink(const Problem& problem, const Group& group, std::int64_t first,
              std::int64_t first_key, Scores& scores) {
  const std::int64_t column = group.sequence.k_length - first_key;
  if (group.sinks == 0 || column < 0 || column >= scores.S.cols()) return;
  const std::vector<float> sinks = problem.sink_scores();
  for (Eigen::Index r = 0; r < scores.S.rows(); ++r) {
    const bool exists = group.query(first + r) < group.sequence.queries();
    scores.S(r, column) =
        exists ? static_cast<double>(sinks[static_cast<std::size_t>(group.query_head(first + r))])
               : kMasked;
  }
  if (scores.slope.size() > 0) scores.slope.col(column).setOnes();
}

}  // namespace

std::vector<Group> groups_of(const Problem& problem, const PositionsInSequences* queries) {
  const std::vector<Sequence> sequences = problem.sequences();
  std::vector<Group> groups;
  for (std::size_t s = 0; s < sequences.size(); ++s) {
    const std::vector<std::int64_t>* const chosen = queries != nullptr ? &(*queries)[s] : nullptr;
    for (std::int64_t head = 0; head < problem.num_heads_kv; ++head) {
      groups.push_back(
          {sequences[s], head, problem.group_size(), chosen, problem.sinks == Sinks::none ? 0 : 1});
    }
  }
  return groups;
}

std::int64_t score_operations(const std::vector<Group>& groups, std::int64_t head_dim) {
  std::int64_t operations = 0;
  for (const Group& group : groups) {
    operations += group.rows() * group.keys() * head_dim;
  }
  return operations;
}

Matrix stacked_rows(const TensorView& tensor, const Group& group, std::int64_t first,
                    std::int64_t count) {
  Matrix rows(count, tensor.extent(3));
  for (std::int64_t r = 0; r < count; ++r) {
    const std::int64_t query = group.sequence.q_begin + group.query(first + r);
    const std::int64_t head = group.query_head(first + r);
    for (std::int64_t c = 0; c < tensor.extent(3); ++c) {
      rows(r, c) = tensor(group.sequence.tensor_batch, query, head, c);
    }
  }
  return rows;
}

Vector stacked_scalars(const TensorView& tensor, const Group& group) {
  Vector scalars(group.rows());
  for (std::int64_t r = 0; r < group.rows(); ++r) {
    scalars(r) = tensor(group.sequence.tensor_batch, group.query_head(r),
                        group.sequence.q_begin + group.query(r));
  }
  return scalars;
}

Matrix key_rows(const TensorView& tensor, const Group& group,
                const std::vector<std::int64_t>* keys) {
  const std::int64_t count = keys_in(group, keys);
  Matrix rows(count, tensor.extent(3));
  for (std::int64_t j = 0; j < count; ++j) {
    const std::int64_t key = key_at(j, keys);
    if (key == group.sequence.k_length) {
      rows.row(j).setZero();
      continue;
    }
    for (std::int64_t c = 0; c < tensor.extent(3); ++c) {
      rows(j, c) =
          tensor(group.sequence.tensor_batch, group.sequence.k_begin + key, group.kv_head, c);
    }
  }
  return rows;
}

void scatter_rows(const Matrix& rows, const Group& group, std::int64_t first, Tensor& tensor) {
  for (std::int64_t r = 0; r < rows.rows(); ++r) {
    const std::int64_t query = group.sequence.q_begin + group.query(first + r);
    for (std::int64_t c = 0; c < rows.cols(); ++c) {
      tensor.set(rows(r, c), group.sequence.tensor_batch, query, group.query_head(first + r), c);
    }
  }
}

void scatter_scalars(const Vector& scalars, const Group& group, Tensor& tensor) {
  for (std::int64_t r = 0; r < scalars.size(); ++r) {
    tensor.set(scalars(r), group.sequence.tensor_batch, group.query_head(r),
               group.sequence.q_begin + group.query(r));
  }
}

void scatter_key_rows(const Matrix& rows, const Group& group, Tensor& tensor,
                      const std::vector<std::int64_t>* keys) {
  for (std::int64_t j = 0; j < rows.rows(); ++j) {
    const std::int64_t key = key_at(j, keys);
    if (key == group.sequence.k_length) continue;
    for (std::int64_t c = 0; c < rows.cols(); ++c) {
      tensor.set(rows(j, c), group.sequence.tensor_batch, group.sequence.k_begin + key,
                 group.kv_head, c);
    }
  }
}

Matrix finite_part(const Matrix& matrix) {
  return matrix.unaryExpr([](double x) { return std::isfinite(x * x) ? x : 0.0; });
}

Scores shaped_scores(const Problem& problem, const Group& group, std::int64_t first,
                     std::int64_t first_key, Matrix products) {
  Scores result{std::move(products), {}};
  if (problem.softcap > 0) apply_softcap(problem.softcap, result);
  const std::vector<float> slopes = problem.alibi_slopes();
  const bool biased = problem.bias.kind != Bias::Kind::none,
             of_heads = problem.head_mask.kind != HeadMask::Kind::none;
  Matrix& S = result.S;
  const auto column = [&](std::int64_t key) {
    return std::clamp<std::int64_t>(key - first_key, 0, S.cols());
  };
  for (Eigen::Index r = 0; r < S.rows(); ++r) {
    const std::int64_t query = group.query(first + r);
    const KeyRange range = problem.mask.band(group.sequence, query);
    const std::int64_t begin = column(range.begin), end = column(range.end);
    if (!slopes.empty()) {
      const double slope = slopes[static_cast<std::size_t>(group.query_head(first + r))];
      const std::int64_t aligned = problem.mask.aligned_key(group.sequence, query) - first_key;
      for (std::int64_t j = begin; j < end; ++j) {
        S(r, j) -= slope * static_cast<double>(std::abs(aligned - j));
      }
    }
    for (std::int64_t j = begin; biased && j < end; ++j) {
      const double bias =
          problem.bias_at(group.sequence.number, group.query_head(first + r), query, first_key + j);
      S(r, j) = bias == kMasked ? kMasked : S(r, j) + bias;  // whatever the product is
    }
    S.row(r).head(begin).setConstant(kMasked);
    S.row(r).tail(S.cols() - end).setConstant(kMasked);
    if (!problem.mask.boolean && !of_heads) continue;
    for (std::int64_t j = begin; j < end; ++j) {
      if (!problem.mask.visible(group.sequence, query, first_key + j) ||
          !problem.head_mask(group.sequence.number, group.query_head(first + r), query,
                             first_key + j)) {
        S(r, j) = kMasked;
      }
    }
  }
  set_sink(problem, group, first, first_key, result);
  return result;
}

Scores scores(const Problem& problem, const Group& group, std::int64_t first, const Matrix& Q,
              const Matrix& K) {
  return shaped_scores(problem, group, first, 0, problem.scale() * Q * K.transpose());
}

RowStatistics exponentiate(Matrix& S) {
  RowStatistics statistics{Vector::Constant(S.rows(), kMasked), Vector::Zero(S.rows())};
  for (Eigen::Index r = 0; r < S.rows(); ++r) {
    double maximum = kMasked;
    for (Eigen::Index j = 0; j < S.cols(); ++j) {
      // NaN scores win, so that they reach the output.
      if (!(S(r, j) <= maximum)) maximum = S(r, j);
    }
    double sum = 0;
    for (Eigen::Index j = 0; j < S.cols(); ++j) {
      const double p = S(r, j) == kMasked ? 0.0 : std::exp(S(r, j) - maximum);
      S(r, j) = p;
      sum += p;
    }
    statistics.maximum(r) = maximum;
    statistics.sum(r) = sum;
  }
  return statistics;
}

Matrix weighted_sum(const Matrix& weights, const Matrix& operand) {
  if (operand.allFinite()) return weights * operand;
  Matrix sums = Matrix::Zero(weights.rows(), operand.cols());
  for (Eigen::Index i = 0; i < weights.rows(); ++i) {
    for (Eigen::Index j = 0; j < weights.cols(); ++j) {
      if (weights(i, j) != 0) sums.row(i) += weights(i, j) * operand.row(j);
    }
  }
  return sums;
}

Matrix transposed_weighted_sum(const Matrix& weights, const Matrix& operand) {
  if (operand.allFinite()) return weights.transpose() * operand;
  return weighted_sum(Matrix(weights.transpose()), operand);
}

void require_shape(const TensorView& tensor, std::string_view name, const std::vector<Axis>& axes) {
  if (tensor.rank() != axes.size()) {
    throw InvalidProblem(std::string(name) + ": " + std::to_string(tensor.rank()) +
                         " axes, but the problem needs " + std::to_string(axes.size()));
  }
  for (std::size_t index = 0; index < axes.size(); ++index) {
    if (tensor.extent(index) != axes[index].extent) {
      throw InvalidProblem(std::string(name) + ": " + std::string(axes[index].name) + " is " +
                           std::to_string(tensor.extent(index)) + ", but the problem needs " +
                           std::to_string(axes[index].extent));
    }
  }
}

}  // namespace attest::reference
