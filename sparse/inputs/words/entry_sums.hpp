#pragma once

#include <vector>

#include "core/sparse_operands/csr_matrix.hpp"
#include "io/machine/slow_memory.hpp"

namespace attest::sparse {

/// How many entries of a matrix lie in any block, from sums made once: closed forms ask for the
/// pairs of the support in every block of many choices of tiles.
/// [sparse/inputs/words/tile_words_test "entries of blocks"]
/// Cost: four bytes for every place of the matrix, present or not.
class EntrySums {
 public:
  explicit EntrySums(const CsrMatrix& matrix);

  std::int64_t in(io::Range rows, io::Range columns) const {
    return at(rows.end, columns.end) - at(rows.begin, columns.end) - at(rows.end, columns.begin) +
           at(rows.begin, columns.begin);
  }
  std::int64_t all() const { return sums_.back(); }

 private:
  // Entries above and to the left.
  std::int64_t at(std::int64_t row, std::int64_t column) const {
    return sums_[static_cast<std::size_t>(row * width_ + column)];
  }

  std::int64_t width_;
  std::vector<std::int32_t> sums_;
};

}  // namespace attest::sparse
