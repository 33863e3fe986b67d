#include "sparse/inputs/testing/random_operands.hpp"

#include <set>

namespace attest::sparse::testing {

CsrMatrix random_integers(Rng& rng, std::int64_t rows, std::int64_t columns, double density) {
  CsrMatrix matrix;
  matrix.rows = rows;
  matrix.columns = columns;
  for (std::int64_t i = 0; i < rows; ++i) {
    const double of_row = rng.uniform() < 0.2 ? 0 : rng.uniform() < 0.1 ? 1 : density;
    for (std::int64_t j = 0; j < columns; ++j) {
      if (rng.uniform() >= of_row) continue;
      matrix.column_indices.push_back(static_cast<std::int32_t>(j));
      matrix.values.push_back(static_cast<float>(rng.between(-3, 3)));
    }
    matrix.row_offsets.push_back(matrix.nonzeros());
  }
  return matrix;
}

SparseOperands random_operands(Rng& rng) {
  const std::int64_t q = rng.between(1, 20), k = rng.between(1, 20), d = rng.between(1, 12);
  const double density = rng.uniform();
  return {random_integers(rng, q, d, density), random_integers(rng, k, d, density),
          random_integers(rng, k, rng.between(1, 9), rng.uniform()), 0.25};
}

CsrMatrix random_rows(Rng& rng, std::int64_t rows, std::int64_t columns, std::int64_t entries) {
  CsrMatrix matrix;
  matrix.rows = rows;
  matrix.columns = columns;
  for (std::int64_t i = 0; i < rows; ++i) {
    std::set<std::int32_t> drawn;
    while (static_cast<std::int64_t>(drawn.size()) < entries) {
      drawn.insert(static_cast<std::int32_t>(rng.between(0, columns - 1)));
    }
    matrix.column_indices.insert(matrix.column_indices.end(), drawn.begin(), drawn.end());
    matrix.values.resize(matrix.column_indices.size(), 1);
    matrix.row_offsets.push_back(matrix.nonzeros());
  }
  return matrix;
}

}  // namespace attest::sparse::testing
