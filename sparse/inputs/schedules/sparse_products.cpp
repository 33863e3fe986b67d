#include "sparse/inputs/schedules/sparse_products.hpp"

#include <algorithm>

namespace attest::sparse {

ProductStore::ProductStore(const CsrMatrix& A, const CsrMatrix& B, const Cut& cut)
    : structure_(product_structure(A, B)),
      cut_(cut),
      A_(cut_rows(A, cut.rows_a, cut.inputs)),
      B_(cut_rows(B, cut.rows_b, cut.inputs)) {
  for (const io::Range& rows : blocks_of(A.rows, cut.rows_a)) {
    C_.emplace_back();
    for (const io::Range& columns : blocks_of(B.rows, cut.rows_b)) {
      C_.back().push_back(std::make_unique<CsrStore>(block_of(structure_, rows, columns)));
    }
  }
}

ProductStore::Stores ProductStore::cut_rows(const CsrMatrix& matrix, std::int64_t rows,
                                            Compressed inputs) {
  Stores stores;
  for (const io::Range& range : blocks_of(matrix.rows, rows)) {
    const CsrMatrix block = block_of(matrix, range, {0, matrix.columns});
    stores.push_back(
        std::make_unique<CsrStore>(inputs == Compressed::by_rows ? block : block.transposed()));
  }
  return stores;
}

SlowProduct ProductStore::slow() {
  SlowProduct product;
  for (const auto& store : A_) product.A.push_back(store->slow());
  for (const auto& store : B_) product.B.push_back(store->slow());
  for (const auto& row : C_) {
    product.C.emplace_back();
    for (const auto& store : row) product.C.back().push_back(store->slow());
  }
  return product;
}

CsrMatrix ProductStore::result() const {
  CsrMatrix whole = structure_;
  std::size_t next = 0;
  for (std::int64_t row = 0; row < whole.rows; ++row) {
    for (const auto& block : C_[static_cast<std::size_t>(row / cut_.rows_a)]) {
      for (const float value : block->matrix().row_values(row % cut_.rows_a)) {
        whole.values[next++] = value;
      }
    }
  }
  return whole;
}

std::vector<OuterPeaks::Block> OuterPeaks::blocks(const CsrMatrix& matrix, std::int64_t rows) {
  std::vector<Block> blocks;
  for (const io::Range& range : blocks_of(matrix.rows, rows)) {
    Block block{range, std::vector<std::int32_t>(static_cast<std::size_t>(matrix.columns))};
    for (std::int64_t row = range.begin; row < range.end; ++row) {
      for (const std::int32_t column : matrix.row_columns(row)) {
        ++block.in_column[static_cast<std::size_t>(column)];
      }
    }
    blocks.push_back(std::move(block));
  }
  return blocks;
}

OuterPeaks::OuterPeaks(const OuterProduct& schedule, const CsrMatrix& A, const CsrMatrix& B,
                       const EntrySums& structure)
    : structure_(structure), A_(blocks(A, schedule.rows_a)), B_(blocks(B, schedule.rows_b)) {}

io::Words OuterPeaks::of(std::size_t i, std::size_t j) const {
  const Block &a = A_[i], &b = B_[j];
  std::int32_t most = 0;
  for (std::size_t l = 0; l < a.in_column.size(); ++l) {
    most = std::max(most, a.in_column[l] + b.in_column[l]);
  }
  return io::Words(a.rows.count()) + 1 + io::Words(2) * structure_.in(a.rows, b.rows) +
         io::Words(3) * most;
}

io::Words OuterPeaks::largest() const {
  io::Words largest = 0;
  for (std::size_t i = 0; i < A_.size(); ++i) {
    for (std::size_t j = 0; j < B_.size(); ++j) largest = std::max(largest, of(i, j));
  }
  return largest;
}

io::Traffic OuterProduct::cost(const CsrMatrix& A, const CsrMatrix& B) const {
  return cost(A, B, EntrySums(product_structure(A, B)));
}

io::Traffic OuterProduct::cost(const CsrMatrix& A, const CsrMatrix& B,
                               const EntrySums& structure) const {
  const io::Words c_a = io::tiles(A.rows, rows_a), c_b = io::tiles(B.rows, rows_b);
  const io::Words Z = structure.all();
  return {words(c_b * A.rows + c_a * c_b + Z +
                io::Words(3) * (c_b * A.nonzeros() + c_a * B.nonzeros())),
          words(Z), words(OuterPeaks(*this, A, B, structure).largest())};
}

io::Traffic NestedProduct::cost(const CsrMatrix& A, const CsrMatrix& B) const {
  return cost(A, B, EntrySums(product_structure(A, B)));
}

io::Traffic NestedProduct::cost(const CsrMatrix& A, const CsrMatrix& B,
                                const EntrySums& structure) const {
  const io::Words c_a = io::tiles(A.rows, rows_a), c_b = io::tiles(B.rows, rows_b);
  const io::Words Z = structure.all();
  io::Words peak = 0;
  for (const io::Range& i : blocks_of(A.rows, rows_a)) {
    for (const io::Range& j : blocks_of(B.rows, rows_b)) {
      peak = std::max(peak, csr_words(A, i) + csr_words(B, j) + i.count() + 1 +
                                io::Words(2) * structure.in(i, j));
    }
  }
  return {words((c_b + 1) * A.rows + io::Words(2) * c_a * c_b + c_a + io::Words(2) * A.nonzeros() +
                c_a * (io::Words(B.rows) + io::Words(2) * B.nonzeros()) + Z),
          words(Z), words(peak)};
}

}  // namespace attest::sparse
