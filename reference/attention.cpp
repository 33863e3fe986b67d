#include "reference/attention.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "reference/group.hpp"

namespace attest::reference {
namespace {

// Rows per block: the block's scores stay near the cache and memory stays linear in seqlen_q.
constexpr std::int64_t kBlockRows = 128;

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

double lse_of(double maximum, double sum, LseBase base) {
  const double natural = maximum + std::log(sum);
  return base == LseBase::e ? natural : natural * std::numbers::log2e;
}

void fill_empty_row(EmptyRow convention, Matrix& O, Eigen::Index row, double& lse) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  switch (convention) {
    case EmptyRow::zero_neg_inf:
      O.row(row).setZero();
      lse = -kInfinity;
      return;
    case EmptyRow::zero_pos_inf:
      O.row(row).setZero();
      lse = kInfinity;
      return;
    case EmptyRow::nan:
      O.row(row).setConstant(kNan);
      lse = kNan;
      return;
  }
}

void check_inputs(const Problem& problem, const TensorView& Q, const TensorView& K,
                  const TensorView& V) {
  problem.validate();
  require_shape(Q, "Q", problem.q_axes());
  require_shape(K, "K", problem.k_axes());
  require_shape(V, "V", problem.v_axes());
}

struct GroupGradients {
  Matrix dK, dV;
};

// One block of rows: writes its dQ and adds to the group's dK and dV.
void backward_block(const Problem& problem, const Group& group, std::int64_t first, const Matrix& Q,
                    const Matrix& K, const Matrix& V, const Matrix& dO, const Vector& dLSE,
                    GroupGradients& sums, Tensor& dQ) {
  Scores block = scores(problem, group, first, Q, K);
  Matrix& P = block.S;
  const RowStatistics statistics = exponentiate(P);
  for (Eigen::Index r = 0; r < P.rows(); ++r) {
    if (statistics.sum(r) > 0) P.row(r) /= statistics.sum(r);
  }
  sums.dV.noalias() += P.transpose() * dO;
  Matrix dS;
  dS.noalias() = dO * V.transpose();
  for (Eigen::Index r = 0; r < P.rows(); ++r) {
    const double delta = P.row(r).dot(dS.row(r)) - dLSE(first + r);
    dS.row(r) = P.row(r).array() * (dS.row(r).array() - delta);
  }
  if (block.slope.size() > 0) dS.array() *= block.slope.array();
  dS *= problem.scale();
  const Matrix rows = dS * K;
  scatter_rows(rows, group, first, dQ);
  sums.dK.noalias() += dS.transpose() * Q;
}

}  // namespace

Forward forward(const Problem& problem, const Conventions& conventions, const TensorView& Q,
                const TensorView& K, const TensorView& V) {
  check_inputs(problem, Q, K, V);
  Forward result{Tensor("O", DType::f64, problem.o_axes()),
                 Tensor("LSE", DType::f64, problem.lse_axes())};
  const std::vector<Group> groups = groups_of(problem);
  const std::vector<Block> blocks = blocks_of(groups);
#pragma omp parallel for schedule(dynamic)
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    const auto [index, first, count] = blocks[b];
    const Group& group = groups[index];
    Matrix P =
        scores(problem, group, first, stacked_rows(Q, group, first, count), key_rows(K, group)).S;
    const RowStatistics statistics = exponentiate(P);
    Matrix O = P * key_rows(V, group);
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
                  const TensorView& V, const Cotangents& cotangents) {
  check_inputs(problem, Q, K, V);
  require_shape(cotangents.dO, "dO", problem.o_axes());
  if (cotangents.dLSE != nullptr) require_shape(*cotangents.dLSE, "dLSE", problem.lse_axes());
  Backward result{Tensor("dQ", DType::f64, problem.q_axes()),
                  Tensor("dK", DType::f64, problem.k_axes()),
                  Tensor("dV", DType::f64, problem.v_axes())};
  const std::vector<Group> groups = groups_of(problem);
#pragma omp parallel for schedule(dynamic)
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const Group& group = groups[g];
    const Matrix keys = key_rows(K, group), values = key_rows(V, group);
    const Vector dLSE = cotangents.dLSE != nullptr ? stacked_scalars(*cotangents.dLSE, group)
                                                   : Vector(Vector::Zero(group.rows()));
    GroupGradients sums{Matrix::Zero(keys.rows(), keys.cols()),
                        Matrix::Zero(values.rows(), values.cols())};
    for (std::int64_t first = 0; first < group.rows(); first += kBlockRows) {
      const std::int64_t count = std::min(kBlockRows, group.rows() - first);
      backward_block(problem, group, first, stacked_rows(Q, group, first, count), keys, values,
                     stacked_rows(cotangents.dO, group, first, count), dLSE, sums, result.dQ);
    }
    scatter_key_rows(sums.dK, group, result.dK);
    scatter_key_rows(sums.dV, group, result.dV);
  }
  return result;
}

}  // namespace attest::reference
