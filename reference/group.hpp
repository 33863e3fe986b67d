#pragma once

#include <Eigen/Dense>
#include <cstdint>
#include <vector>

#include "core/problem.hpp"
#include "core/tensor.hpp"
#include "reference/exact/sample.hpp"

// Some files with OpenMP and some without make products wrong: the linker pairs Eigen's function
// that starts threads with one that does not know of them
// (docs/decisions/0014-openmp-wherever-eigen.md). [proptest/judge/loss_test "among threads"]
#ifndef EIGEN_HAS_OPENMP
#error "compile with OpenMP, as the target attest::attest does: all files that use Eigen, or none"
#endif

/// The unit of work inside the reference: one sequence and one K/V head with all query heads that
/// share it, their rows stacked head after head. Sums over a group of heads (GQA, MQA) then fall
/// out of the matrix products. A sink is one more key, the last, of zeros in K and V: softmax,
/// gradients and their bounds then have it as they have any key
/// (docs/theory/error-bounds/forward.md).
namespace attest::reference {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Vector = Eigen::VectorXd;

/// Sums of columns, one each; zeros without rows, where Eigen moves a null pointer.
inline Vector column_sums(const Matrix& m) {
  if (m.rows() == 0) return Vector::Zero(m.cols());
  return m.colwise().sum().transpose();
}

struct Group {
  Sequence sequence;
  std::int64_t kv_head = 0;
  std::int64_t group_size = 1;
  const std::vector<std::int64_t>* chosen = nullptr;  // the queries of its rows; null: all
  std::int64_t sinks = 0;                             // keys behind those of the sequence: 0 or 1

  std::int64_t queries() const {
    return chosen != nullptr ? static_cast<std::int64_t>(chosen->size()) : sequence.q_length;
  }
  std::int64_t rows() const { return group_size * queries(); }
  std::int64_t keys() const { return sequence.k_length + sinks; }
  std::int64_t query_head(std::int64_t row) const { return kv_head * group_size + row / queries(); }
  std::int64_t query(std::int64_t row) const {
    const std::int64_t number = row % queries();
    return chosen != nullptr ? (*chosen)[static_cast<std::size_t>(number)] : number;
  }
};

/// Every (sequence, K/V head) of the problem, a sequence's heads one after another; with `queries`
/// (not null) the rows of those alone, which the groups point to.
std::vector<Group> groups_of(const Problem& problem, const PositionsInSequences* queries = nullptr);

/// Products that all scores of the groups take: how much work a pass over them is.
std::int64_t score_operations(const std::vector<Group>& groups, std::int64_t head_dim);

/// Rows first .. first+count-1 of the stack of Q, O or dO: (count, head_dim).
Matrix stacked_rows(const TensorView& tensor, const Group& group, std::int64_t first,
                    std::int64_t count);

/// The stack of LSE or dLSE: (rows).
Vector stacked_scalars(const TensorView& tensor, const Group& group);

/// The sequence's rows of K or V, zeros for the sink: (keys(), head_dim); with `keys` (not null)
/// those alone.
Matrix key_rows(const TensorView& tensor, const Group& group,
                const std::vector<std::int64_t>* keys = nullptr);

/// The inverse of stacked_rows, stacked_scalars and key_rows; a sink's row goes nowhere.
void scatter_rows(const Matrix& rows, const Group& group, std::int64_t first, Tensor& tensor);
void scatter_scalars(const Vector& scalars, const Group& group, Tensor& tensor);
void scatter_key_rows(const Matrix& rows, const Group& group, Tensor& tensor,
                      const std::vector<std::int64_t>* keys = nullptr);

/// The matrix with 0 for every entry whose square is not finite: what the bounds of the outputs
/// that depend on no such entry need. (Only float64 tensors hold finite values of that size.)
/// [reference/bounds/bounds_test]
Matrix finite_part(const Matrix& matrix);

/// Scores of a block of stacked rows.
struct Scores {
  Matrix S;      // (count, keys()) after softcap, ALiBi and bias; -inf where masked
  Matrix slope;  // d score / d (scale q.k): the softcap's derivative; empty without softcap
};

/// Scores of the stacked rows first .. first + Q.rows() - 1 against all keys of the group.
Scores scores(const Problem& problem, const Group& group, std::int64_t first, const Matrix& Q,
              const Matrix& K);

/// Scores from products scale q.k of the stacked rows first .. with the group's keys first_key ..
Scores shaped_scores(const Problem& problem, const Group& group, std::int64_t first,
                     std::int64_t first_key, Matrix products);

/// Row maxima and sums of exponentials of a block of scores; turns S into exp(S - maximum).
struct RowStatistics {
  Vector maximum;  // -inf for a row without a visible key
  Vector sum;
};
RowStatistics exponentiate(Matrix& S);

/// weights * operand and weights^T * operand, where a weight of exactly zero adds nothing even if
/// it meets NaN or infinity: what a key holds that no query sees reaches no result.
/// [reference/exact/attention_test "keys that nobody sees may hold anything"]
Matrix weighted_sum(const Matrix& weights, const Matrix& operand);
Matrix transposed_weighted_sum(const Matrix& weights, const Matrix& operand);

/// Throws InvalidProblem unless the tensor has exactly these axes' extents.
void require_shape(const TensorView& tensor, std::string_view name, const std::vector<Axis>& axes);

}  // namespace attest::reference
