#include "sparse/inputs/words/entry_sums.hpp"

namespace attest::sparse {

EntrySums::EntrySums(const CsrMatrix& matrix)
    : width_(matrix.columns + 1), sums_(static_cast<std::size_t>((matrix.rows + 1) * width_)) {
  for (std::int64_t row = 0; row < matrix.rows; ++row) {
    const auto of_row = matrix.row_columns(row);
    auto above = sums_.begin() + row * width_;
    auto here = above + width_;
    std::size_t before = 0;
    for (std::int64_t column = 0; column < width_; ++column) {
      while (before < of_row.size() && of_row[before] < column) ++before;
      *here++ = *above++ + static_cast<std::int32_t>(before);
    }
  }
}

}  // namespace attest::sparse
