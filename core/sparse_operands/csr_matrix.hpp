#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/tensor.hpp"

namespace attest {

/// A sparse matrix in compressed rows: row i holds the entries row_offsets[i] ..
/// row_offsets[i + 1] - 1 of column_indices and values. An entry may hold 0: it belongs to the
/// structure. Values of bf16 and f16 matrices are exact in float32.
struct CsrMatrix {
  std::int64_t rows = 0, columns = 0;
  std::vector<std::int64_t> row_offsets{0};  // rows + 1, from 0 to the number of entries
  std::vector<std::int32_t> column_indices;  // strictly ascending within a row
  std::vector<float> values;

  std::int64_t nonzeros() const { return static_cast<std::int64_t>(values.size()); }
  std::span<const std::int32_t> row_columns(std::int64_t row) const;
  std::span<const float> row_values(std::int64_t row) const;

  /// Entries of each column.
  std::vector<std::int64_t> column_counts() const;

  /// The same matrix by columns.  [core/sparse_operands/csr_matrix_test "transposed"]
  CsrMatrix transposed() const;

  /// Requires: offsets from 0 that never decrease and end at the number of entries, column indices
  /// inside the matrix and strictly ascending within a row, finite values (off the support a zero
  /// would have to multiply them). Else throws InvalidProblem with `name`, the place and the
  /// remedy.  [core/sparse_operands/csr_matrix_test "malformed"]
  void validate(std::string_view name) const;

  friend bool operator==(const CsrMatrix&, const CsrMatrix&) = default;
};

/// The entries of a (rows, columns) view that are not 0. Requires: two axes, finite elements that
/// float32 holds exactly, fewer than 2^31 columns. Else throws InvalidProblem.
/// [core/sparse_operands/csr_matrix_test "round trip"]
CsrMatrix csr_from_dense(const TensorView& matrix);

/// Writes every element of a (rows, columns) view, rounded to its dtype. Requires: equal shape.
/// Else throws InvalidProblem.  [core/sparse_operands/csr_matrix_test "round trip"]
void csr_to_dense(const CsrMatrix& matrix, const TensorView& dense);

}  // namespace attest
