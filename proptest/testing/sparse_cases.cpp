#include "proptest/testing/sparse_cases.hpp"

#include <cmath>

namespace attest::proptest {
namespace {

using enum SparseFamily;

// What a family draws its matrices from; entries are `factor` times a normal value.
struct Recipe {
  std::int64_t queries, keys, d, dv;
  double density, density_v;
  double factor_q = 1, factor_k = 1, factor_v = 1;
  double sign_q = 0, sign_k = 0;  // not 0: every entry has it
};

// A matrix row by row.
class Builder {
 public:
  Builder(std::int64_t rows, std::int64_t columns) {
    matrix_.rows = rows;
    matrix_.columns = columns;
  }
  void add(std::int64_t column, double value) {
    matrix_.column_indices.push_back(static_cast<std::int32_t>(column));
    matrix_.values.push_back(static_cast<float>(value));
  }
  void end_row() { matrix_.row_offsets.push_back(matrix_.nonzeros()); }
  CsrMatrix take() { return std::move(matrix_); }

 private:
  CsrMatrix matrix_;
};

CsrMatrix draw(Rng& rng, std::int64_t rows, std::int64_t columns, double density, double factor,
               double sign) {
  Builder builder(rows, columns);
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      if (rng.uniform() >= density) continue;
      const double value = factor * rng.normal();
      builder.add(j, sign == 0 ? value : sign * (std::abs(value) + factor));
    }
    builder.end_row();
  }
  return builder.take();
}

Recipe recipe_of(SparseFamily family, Rng& rng) {
  Recipe r{rng.between(1, 24), rng.between(1, 40), rng.between(1, 24), rng.between(1, 12), 0, 0};
  r.density = 0.1 + 0.4 * rng.uniform();
  r.density_v = rng.uniform();
  const bool full = family == negative_full || family == nearly_full;
  if (full) r.density = 1;
  if (full || family == negative) {
    r.sign_q = 1;
    r.sign_k = -1;
    r.factor_q = r.factor_k = 0.5 + 3 * rng.uniform();
  }
  if (family == tiny_scores) r.factor_q = 0x1p-10 * rng.uniform();
  if (family == huge_scores) r.factor_q = r.factor_k = 40;
  if (family == constant_values) r.density_v = 1;
  if (family == many_keys) {
    r.keys = rng.between(200, 600);
    r.density = 0.02;
  }
  if (family == small_values) r.factor_v = 0x1p-100;
  if (family == subnormal_keys) r.factor_k = 0x1p-135;
  return r;
}

// Without the rows, and columns, that are drawn.
CsrMatrix with_empty_lines(Rng& rng, const CsrMatrix& matrix) {
  std::vector<double> column(static_cast<std::size_t>(matrix.columns));
  for (double& drawn : column) drawn = rng.uniform();
  Builder builder(matrix.rows, matrix.columns);
  for (std::int64_t i = 0; i < matrix.rows; ++i) {
    const bool keep = rng.uniform() < 0.5;
    const auto columns = matrix.row_columns(i);
    for (std::size_t e = 0; e < columns.size(); ++e) {
      if (keep && column[static_cast<std::size_t>(columns[e])] < 0.5) {
        builder.add(columns[e], static_cast<double>(matrix.row_values(i)[e]));
      }
    }
    builder.end_row();
  }
  return builder.take();
}

// Every second row the negative of the one before: sums over an even number of rows vanish.
CsrMatrix alternating(const CsrMatrix& matrix) {
  Builder builder(matrix.rows, matrix.columns);
  for (std::int64_t i = 0; i < matrix.rows; ++i) {
    const std::int64_t source = i - i % 2;
    const auto columns = matrix.row_columns(source);
    for (std::size_t e = 0; e < columns.size(); ++e) {
      const auto value = static_cast<double>(matrix.row_values(source)[e]);
      builder.add(columns[e], i == source ? value : -value);
    }
    builder.end_row();
  }
  return builder.take();
}

// All rows as one of three.
CsrMatrix repeated(const CsrMatrix& matrix) {
  Builder builder(matrix.rows, matrix.columns);
  for (std::int64_t i = 0; i < matrix.rows; ++i) {
    const auto columns = matrix.row_columns(i % 3);
    for (std::size_t e = 0; e < columns.size(); ++e) {
      builder.add(columns[e], static_cast<double>(matrix.row_values(i % 3)[e]));
    }
    builder.end_row();
  }
  return builder.take();
}

// The last key loses its entries.
CsrMatrix without_last_row(CsrMatrix matrix) {
  const std::int64_t kept = matrix.row_offsets[static_cast<std::size_t>(matrix.rows - 1)];
  matrix.row_offsets.back() = kept;
  matrix.column_indices.resize(static_cast<std::size_t>(kept));
  matrix.values.resize(static_cast<std::size_t>(kept));
  return matrix;
}

double scale_of(SparseFamily family, Rng& rng, std::int64_t d) {
  const double usual = 1 / std::sqrt(static_cast<double>(d));
  if (family != normal && family != empty_lines) return usual;
  const double draw = rng.uniform();
  if (draw < 0.1) return 0;
  if (draw < 0.2) return -usual;
  return draw < 0.3 ? 2.5 : usual;
}

}  // namespace

SparseCase sparse_case(SparseFamily family, Rng& rng) {
  const Recipe r = recipe_of(family, rng);
  SparseOperands in{draw(rng, r.queries, r.d, r.density, r.factor_q, r.sign_q),
                    draw(rng, r.keys, r.d, r.density, r.factor_k, r.sign_k),
                    draw(rng, r.keys, r.dv, r.density_v, r.factor_v, 0),
                    scale_of(family, rng, r.d)};
  if (family == nearly_full) in.K = without_last_row(in.K);
  if (family == empty_lines) {
    for (CsrMatrix* matrix : {&in.Q, &in.K, &in.V}) *matrix = with_empty_lines(rng, *matrix);
  }
  if (family == cancelling) {
    in.K = alternating(in.K);
    in.V = alternating(in.V);
  }
  if (family == duplicate_keys && r.keys >= 3) in.K = repeated(in.K);
  if (family == constant_values) {
    for (float& value : in.V.values) value = 1;
  }
  if (family == one_hot) {
    for (std::int64_t i = 0; i < r.queries; ++i) {
      const auto first = static_cast<std::size_t>(in.Q.row_offsets[static_cast<std::size_t>(i)]);
      if (!in.Q.row_columns(i).empty()) in.Q.values[first] = 60;
    }
  }
  for (CsrMatrix* matrix : {&in.Q, &in.K, &in.V}) {
    for (float& value : matrix->values) {
      if (family == stored_zeros && rng.uniform() < 0.3) value = 0;
      if (family == half_values) {
        value = static_cast<float>(round_to(DType::bf16, static_cast<double>(value)));
      }
    }
  }
  SparseCase made{std::move(in), {}};
  for (std::int64_t e = 0; e < r.queries * r.dv; ++e) {
    made.dO.push_back(static_cast<float>(rng.uniform() < 0.1 ? 0 : rng.normal()));
  }
  return made;
}

}  // namespace attest::proptest
