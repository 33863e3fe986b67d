#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace attest {

/// A boolean matrix, row by row.
struct BooleanMatrix {
  std::int64_t rows = 0, columns = 0;
  std::vector<char> entries;

  std::string_view row(std::int64_t index) const;
  BooleanMatrix transposed() const;
};

/// The rows that are equal, one list for each different row: rows in ascending order, lists in that
/// of their first row.  [core/mask/sparsity/row_classes_test]
///
/// Cost: rows x columns, times the logarithm of the number of lists.
std::vector<std::vector<std::int64_t>> row_classes(const BooleanMatrix& matrix);

}  // namespace attest
