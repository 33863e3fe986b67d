#include "sparse/inputs/attention.hpp"

#include <cmath>
#include <string>

#include "core/error.hpp"
#include "sparse/inputs/score_row.hpp"

namespace attest::sparse {
namespace {

// Row-major, zero at first.
class Dense {
 public:
  Dense(std::int64_t rows, std::int64_t columns)
      : columns_(static_cast<std::size_t>(columns)),
        elements_(static_cast<std::size_t>(rows) * columns_) {}

  std::span<float> row(std::int64_t i) {
    return std::span(elements_).subspan(static_cast<std::size_t>(i) * columns_, columns_);
  }
  std::vector<float> take() { return std::move(elements_); }

 private:
  std::size_t columns_;
  std::vector<float> elements_;
};

// sum += factor * (a row of the matrix)
void add_row(const CsrMatrix& matrix, std::int64_t row, float factor, std::span<float> sum) {
  const auto columns = matrix.row_columns(row);
  const auto values = matrix.row_values(row);
  for (std::size_t e = 0; e < columns.size(); ++e) {
    sum[static_cast<std::size_t>(columns[e])] += factor * values[e];
  }
}

void add_row(std::span<const float> row, float factor, std::span<float> sum) {
  for (std::size_t c = 0; c < row.size(); ++c) sum[c] += factor * row[c];
}

float dot(const CsrMatrix& matrix, std::int64_t row, std::span<const float> dense) {
  const auto columns = matrix.row_columns(row);
  const auto values = matrix.row_values(row);
  float sum = 0;
  for (std::size_t e = 0; e < columns.size(); ++e) {
    sum += values[e] * dense[static_cast<std::size_t>(columns[e])];
  }
  return sum;
}

float dot(std::span<const float> a, std::span<const float> b) {
  float sum = 0;
  for (std::size_t c = 0; c < a.size(); ++c) sum += a[c] * b[c];
  return sum;
}

Dense column_sums(const CsrMatrix& matrix) {
  Dense sums(1, matrix.columns);
  for (std::int64_t j = 0; j < matrix.rows; ++j) add_row(matrix, j, 1, sums.row(0));
  return sums;
}

// V^T K (head_dim_v, head_dim_qk)
Dense value_key_sums(const SparseOperands& in) {
  Dense sums(in.V.columns, in.K.columns);
  for (std::int64_t j = 0; j < in.V.rows; ++j) {
    const auto columns = in.V.row_columns(j);
    const auto values = in.V.row_values(j);
    for (std::size_t e = 0; e < columns.size(); ++e) {
      add_row(in.K, j, values[e], sums.row(columns[e]));
    }
  }
  return sums;
}

void require_size(const char* name, std::size_t got, std::int64_t needed) {
  if (static_cast<std::int64_t>(got) == needed) return;
  throw InvalidProblem(std::string(name) + ": has " + std::to_string(got) + " elements, but " +
                       std::to_string(needed) + " are needed; pass one per query and column");
}

// The sums over queries that the keys share: what a key without support gets.
struct OverQueries {
  Dense weighted_dO;  // sum_i w_i dO_i (1, head_dim_v)
  Dense A;            // sum_i w_i dO_i^T Q_i (head_dim_v, head_dim_qk)
  Dense b;            // sum_i w_i delta_i Q_i (1, head_dim_qk)

  explicit OverQueries(const SparseOperands& in)
      : weighted_dO(1, in.V.columns), A(in.V.columns, in.Q.columns), b(1, in.Q.columns) {}

  void add(const SparseOperands& in, std::int64_t query, float weight, std::span<const float> dO,
           float delta) {
    add_row(dO, weight, weighted_dO.row(0));
    add_row(in.Q, query, weight * delta, b.row(0));
    for (std::int64_t c = 0; c < in.V.columns; ++c) {
      add_row(in.Q, query, weight * dO[static_cast<std::size_t>(c)], A.row(c));
    }
  }
};

// dV_j += sum_i w_i dO_i; dK_j = scale (dK_j + V_j A - b).
void finish_keys(const SparseOperands& in, OverQueries& shared, Dense& dK, Dense& dV) {
  const auto scale = static_cast<float>(in.softmax_scale);
  for (std::int64_t j = 0; j < in.K.rows; ++j) {
    add_row(shared.weighted_dO.row(0), 1, dV.row(j));
    const auto gradient = dK.row(j);
    const auto columns = in.V.row_columns(j);
    for (std::size_t e = 0; e < columns.size(); ++e) {
      add_row(shared.A.row(columns[e]), in.V.row_values(j)[e], gradient);
    }
    add_row(shared.b.row(0), -1, gradient);
    for (float& element : gradient) element *= scale;
  }
}

}  // namespace

Outputs forward(const SparseOperands& operands) {
  operands.validate();
  const std::int64_t queries = operands.Q.rows;
  const auto keys = static_cast<float>(operands.K.rows);
  Dense sum_V = column_sums(operands.V);
  Dense O(queries, operands.V.columns), LSE(queries, 1);
  ScoreRow row(operands);
  for (std::int64_t i = 0; i < queries; ++i) {
    row.form(i);
    const float maximum = row.maximum();
    row.weigh(maximum);
    float sum = keys * row.background();
    const auto out = O.row(i);
    add_row(sum_V.row(0), row.background(), out);
    for (const std::int32_t key : row.keys()) {
      sum += row.weight(key);
      add_row(operands.V, key, row.weight(key), out);
    }
    for (float& element : out) element /= sum;
    LSE.row(i)[0] = maximum + std::log(sum);
  }
  return {O.take(), LSE.take()};
}

void require_sizes(const SparseOperands& operands, std::span<const float> dO,
                   const Outputs& stored) {
  const std::int64_t queries = operands.Q.rows;
  require_size("dO", dO.size(), queries * operands.V.columns);
  require_size("O", stored.O.size(), queries * operands.V.columns);
  require_size("LSE", stored.LSE.size(), queries);
}

Gradients backward(const SparseOperands& operands, std::span<const float> dO,
                   const Outputs& stored) {
  operands.validate();
  const std::int64_t queries = operands.Q.rows, keys = operands.K.rows;
  require_sizes(operands, dO, stored);
  const auto scale = static_cast<float>(operands.softmax_scale);
  const auto width = static_cast<std::size_t>(operands.V.columns);
  Dense dQ(queries, operands.Q.columns), dK(keys, operands.K.columns), dV(keys, operands.V.columns);
  Dense sum_K = column_sums(operands.K), sum_VK = value_key_sums(operands);
  OverQueries shared(operands);
  ScoreRow row(operands);
  for (std::int64_t i = 0; i < queries; ++i) {
    const auto first = static_cast<std::size_t>(i) * width;
    const auto dO_i = dO.subspan(first, width);
    const float delta = dot(dO_i, std::span(stored.O).subspan(first, width));
    row.form(i);
    row.weigh(stored.LSE[static_cast<std::size_t>(i)]);
    const auto gradient = dQ.row(i);
    for (std::int64_t c = 0; c < operands.V.columns; ++c) {
      add_row(sum_VK.row(c), dO_i[static_cast<std::size_t>(c)], gradient);
    }
    add_row(sum_K.row(0), -delta, gradient);
    for (float& element : gradient) element *= row.background();
    for (const std::int32_t key : row.keys()) {
      const float G = row.weight(key);
      const float H = G * (dot(operands.V, key, dO_i) - delta);
      add_row(dO_i, G, dV.row(key));
      add_row(operands.K, key, H, gradient);
      add_row(operands.Q, i, H, dK.row(key));
    }
    for (float& element : gradient) element *= scale;
    shared.add(operands, i, row.background(), dO_i, delta);
  }
  finish_keys(operands, shared, dK, dV);
  return {dQ.take(), dK.take(), dV.take()};
}

}  // namespace attest::sparse
