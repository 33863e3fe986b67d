#include "sparse/inputs/words/slow_csr.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <string>
#include <utility>

#include "core/error.hpp"

namespace attest::sparse {
namespace {

float word_of(std::int64_t index) { return std::bit_cast<float>(static_cast<std::int32_t>(index)); }

}  // namespace

io::Range SlowCsr::entries(io::Range rows) const {
  const auto at = [this](std::int64_t row) {
    return structure->row_offsets[static_cast<std::size_t>(row)];
  };
  return {at(rows.begin), at(rows.end)};
}

CsrStore::CsrStore(CsrMatrix matrix) : matrix_(std::move(matrix)) {
  if (matrix_.nonzeros() > std::numeric_limits<std::int32_t>::max()) {
    throw InvalidProblem("sparse matrix: " + std::to_string(matrix_.nonzeros()) +
                         " entries, but an index word counts to 2^31 - 1; cut it into blocks");
  }
  for (const std::int64_t offset : matrix_.row_offsets) offsets_.push_back(word_of(offset));
  for (const std::int32_t column : matrix_.column_indices) indices_.push_back(word_of(column));
  for (std::int64_t row = 0; row < matrix_.rows; ++row) {
    labels_.insert(labels_.end(), matrix_.row_columns(row).size(), word_of(row));
  }
}

SlowCsr CsrStore::slow() {
  const auto column = [](const char* name, std::vector<float>& words) {
    return io::MutableSlowMatrix(name, static_cast<std::int64_t>(words.size()), 1, DType::f32,
                                 words.data(), 1);
  };
  return {&matrix_, column("offsets", offsets_), column("indices", indices_),
          column("labels", labels_), column("values", matrix_.values)};
}

CsrMatrix block_of(const CsrMatrix& matrix, io::Range rows, io::Range columns) {
  CsrMatrix block;
  block.rows = rows.count();
  block.columns = columns.count();
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    const auto of_row = matrix.row_columns(row);
    for (std::size_t e = 0; e < of_row.size(); ++e) {
      if (of_row[e] < columns.begin || of_row[e] >= columns.end) continue;
      block.column_indices.push_back(static_cast<std::int32_t>(of_row[e] - columns.begin));
      block.values.push_back(matrix.row_values(row)[e]);
    }
    block.row_offsets.push_back(block.nonzeros());
  }
  return block;
}

std::vector<io::Range> blocks_of(std::int64_t extent, std::int64_t block) {
  std::vector<io::Range> blocks;
  for (std::int64_t first = 0; first < extent; first += block) {
    blocks.push_back({first, std::min(first + block, extent)});
  }
  return blocks;
}

CsrGrid::CsrGrid(const CsrMatrix& matrix, std::int64_t block_rows, std::int64_t block_columns) {
  for (const io::Range& columns : blocks_of(matrix.columns, block_columns)) {
    blocks_.emplace_back();
    for (const io::Range& rows : blocks_of(matrix.rows, block_rows)) {
      blocks_.back().push_back(std::make_unique<CsrStore>(block_of(matrix, rows, columns)));
    }
  }
}

std::vector<std::vector<SlowCsr>> CsrGrid::slow() {
  std::vector<std::vector<SlowCsr>> grid;
  for (const auto& columns : blocks_) {
    grid.emplace_back();
    for (const auto& store : columns) grid.back().push_back(store->slow());
  }
  return grid;
}

CsrMatrix product_structure(const CsrMatrix& A, const CsrMatrix& B) {
  const CsrMatrix by_column = B.transposed();
  CsrMatrix structure;
  structure.rows = A.rows;
  structure.columns = B.rows;
  std::vector<std::int64_t> met_for(static_cast<std::size_t>(B.rows), -1);
  for (std::int64_t row = 0; row < A.rows; ++row) {
    const auto first = static_cast<std::ptrdiff_t>(structure.column_indices.size());
    for (const std::int32_t column : A.row_columns(row)) {
      for (const std::int32_t other : by_column.row_columns(column)) {
        if (std::exchange(met_for[static_cast<std::size_t>(other)], row) == row) continue;
        structure.column_indices.push_back(other);
      }
    }
    std::sort(structure.column_indices.begin() + first, structure.column_indices.end());
    structure.row_offsets.push_back(static_cast<std::int64_t>(structure.column_indices.size()));
  }
  structure.values.assign(structure.column_indices.size(), 0);
  return structure;
}

}  // namespace attest::sparse
