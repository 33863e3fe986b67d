#include "core/mask/sparsity/row_classes.hpp"

#include <cstddef>
#include <map>

namespace attest {

std::string_view BooleanMatrix::row(std::int64_t index) const {
  return {entries.data() + index * columns, static_cast<std::size_t>(columns)};
}

BooleanMatrix BooleanMatrix::transposed() const {
  BooleanMatrix result{columns, rows, std::vector<char>(entries.size())};
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      result.entries[static_cast<std::size_t>(j * rows + i)] =
          entries[static_cast<std::size_t>(i * columns + j)];
    }
  }
  return result;
}

std::vector<std::vector<std::int64_t>> row_classes(const BooleanMatrix& matrix) {
  std::vector<std::vector<std::int64_t>> classes;
  std::map<std::string_view, std::size_t> number;
  for (std::int64_t row = 0; row < matrix.rows; ++row) {
    const auto [found, is_new] = number.emplace(matrix.row(row), classes.size());
    if (is_new) classes.emplace_back();
    classes[found->second].push_back(row);
  }
  return classes;
}

}  // namespace attest
