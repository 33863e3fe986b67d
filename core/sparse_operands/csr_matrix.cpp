#include "core/sparse_operands/csr_matrix.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "core/error.hpp"

namespace attest {
namespace {

[[noreturn]] void refuse(std::string_view name, const std::string& what) {
  throw InvalidProblem(std::string(name) + ": " + what);
}

std::string at(const char* list, std::size_t index, std::int64_t value) {
  return std::string(list) + "[" + std::to_string(index) + "] is " + std::to_string(value);
}

void check_offsets(const CsrMatrix& matrix, std::string_view name) {
  const std::vector<std::int64_t>& offsets = matrix.row_offsets;
  if (static_cast<std::int64_t>(offsets.size()) != matrix.rows + 1) {
    refuse(name, "row_offsets has " + std::to_string(offsets.size()) + " entries, but " +
                     std::to_string(matrix.rows) +
                     " rows need one more than there are rows; pass where each row begins and the "
                     "number of entries");
  }
  if (offsets[0] != 0) refuse(name, at("row_offsets", 0, offsets[0]) + "; it must be 0");
  for (std::size_t i = 1; i < offsets.size(); ++i) {
    if (offsets[i] < offsets[i - 1]) {
      refuse(name, at("row_offsets", i, offsets[i]) + ", less than the " +
                       std::to_string(offsets[i - 1]) + " before it; offsets never decrease");
    }
  }
  if (matrix.column_indices.size() != matrix.values.size()) {
    refuse(name, std::to_string(matrix.column_indices.size()) + " columns, but " +
                     std::to_string(matrix.values.size()) + " values; pass one each");
  }
  if (offsets.back() != matrix.nonzeros()) {
    refuse(name, at("row_offsets", offsets.size() - 1, offsets.back()) + ", but there are " +
                     std::to_string(matrix.nonzeros()) +
                     " values; the last offset is their number");
  }
}

void check_entries(const CsrMatrix& matrix, std::string_view name) {
  for (std::int64_t row = 0; row < matrix.rows; ++row) {
    const auto begin = static_cast<std::size_t>(matrix.row_offsets[static_cast<std::size_t>(row)]);
    const auto end =
        static_cast<std::size_t>(matrix.row_offsets[static_cast<std::size_t>(row) + 1]);
    for (std::size_t entry = begin; entry < end; ++entry) {
      const std::int32_t column = matrix.column_indices[entry];
      if (column < 0 || column >= matrix.columns) {
        refuse(name, at("columns", entry, column) + ", but columns go from 0 to " +
                         std::to_string(matrix.columns - 1) + "; count from 0");
      }
      if (entry > begin && column <= matrix.column_indices[entry - 1]) {
        refuse(name, at("columns", entry, column) + " after " +
                         std::to_string(matrix.column_indices[entry - 1]) + " in row " +
                         std::to_string(row) + "; sort the columns of a row and add up duplicates");
      }
      if (!std::isfinite(matrix.values[entry])) {
        refuse(name, "values[" + std::to_string(entry) + "] is " +
                         std::to_string(matrix.values[entry]) +
                         "; sparse inputs must be finite, use the dense kernels for others");
      }
    }
  }
}

}  // namespace

std::span<const std::int32_t> CsrMatrix::row_columns(std::int64_t row) const {
  const auto i = static_cast<std::size_t>(row);
  return std::span(column_indices)
      .subspan(static_cast<std::size_t>(row_offsets[i]),
               static_cast<std::size_t>(row_offsets[i + 1] - row_offsets[i]));
}

std::span<const float> CsrMatrix::row_values(std::int64_t row) const {
  const auto i = static_cast<std::size_t>(row);
  return std::span(values).subspan(static_cast<std::size_t>(row_offsets[i]),
                                   static_cast<std::size_t>(row_offsets[i + 1] - row_offsets[i]));
}

std::vector<std::int64_t> CsrMatrix::column_counts() const {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(columns), 0);
  for (const std::int32_t column : column_indices) ++counts[static_cast<std::size_t>(column)];
  return counts;
}

CsrMatrix CsrMatrix::transposed() const {
  CsrMatrix by_columns{columns, rows, {0}, column_indices, values};
  for (const std::int64_t count : column_counts()) {
    by_columns.row_offsets.push_back(by_columns.row_offsets.back() + count);
  }
  std::vector<std::int64_t> next(by_columns.row_offsets.begin(), by_columns.row_offsets.end() - 1);
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto of_row = row_columns(row);
    for (std::size_t e = 0; e < of_row.size(); ++e) {
      const auto place = static_cast<std::size_t>(next[static_cast<std::size_t>(of_row[e])]++);
      by_columns.column_indices[place] = static_cast<std::int32_t>(row);
      by_columns.values[place] = row_values(row)[e];
    }
  }
  return by_columns;
}

void CsrMatrix::validate(std::string_view name) const {
  constexpr std::int64_t kLargest = std::numeric_limits<std::int32_t>::max();
  for (const auto& [axis, extent] : {std::pair{"rows", rows}, std::pair{"columns", columns}}) {
    if (extent < 0 || extent > kLargest) {
      refuse(name, std::string(axis) + " is " + std::to_string(extent) +
                       "; it must be from 0 to 2^31 - 1");
    }
  }
  check_offsets(*this, name);
  check_entries(*this, name);
}

CsrMatrix csr_from_dense(const TensorView& matrix) {
  if (matrix.rank() != 2) {
    refuse(matrix.name(), "has " + std::to_string(matrix.rank()) + " axes; pass rows and columns");
  }
  CsrMatrix sparse;
  sparse.rows = matrix.extent(0);
  sparse.columns = matrix.extent(1);
  for (std::int64_t i = 0; i < sparse.rows; ++i) {
    for (std::int64_t j = 0; j < sparse.columns; ++j) {
      const double element = matrix(i, j);
      if (element == 0) continue;
      const auto value = static_cast<float>(element);
      if (std::isfinite(element) && static_cast<double>(value) != element) {
        refuse(matrix.name(), "element (" + std::to_string(i) + ", " + std::to_string(j) +
                                  ") has more digits than float32; round it first");
      }
      sparse.column_indices.push_back(static_cast<std::int32_t>(j));
      sparse.values.push_back(value);
    }
    sparse.row_offsets.push_back(sparse.nonzeros());
  }
  sparse.validate(matrix.name());
  return sparse;
}

void csr_to_dense(const CsrMatrix& matrix, const TensorView& dense) {
  if (dense.rank() != 2 || dense.extent(0) != matrix.rows || dense.extent(1) != matrix.columns) {
    refuse(dense.name(), "the view must be " + std::to_string(matrix.rows) + " x " +
                             std::to_string(matrix.columns) + ", as the sparse matrix is");
  }
  for (std::int64_t i = 0; i < matrix.rows; ++i) {
    for (std::int64_t j = 0; j < matrix.columns; ++j) dense.set(0, i, j);
    const auto columns = matrix.row_columns(i);
    for (std::size_t e = 0; e < columns.size(); ++e) {
      dense.set(static_cast<double>(matrix.row_values(i)[e]), i, columns[e]);
    }
  }
}

}  // namespace attest
