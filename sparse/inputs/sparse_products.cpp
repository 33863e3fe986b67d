#include "sparse/inputs/sparse_products.hpp"

#include <algorithm>

namespace attest::sparse {
namespace {

// Entries of the block of C for some rows of A and of B.
std::int64_t entries(const CsrMatrix& structure, io::Range rows, io::Range columns) {
  return block_of(structure, rows, columns).nonzeros();
}

}  // namespace

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

io::Words OuterProduct::block_peak(const CsrMatrix& A, const CsrMatrix& B, io::Range i,
                                   io::Range j) const {
  const CsrMatrix rows = block_of(A, i, {0, A.columns}), others = block_of(B, j, {0, B.columns});
  const auto of_rows = rows.column_counts(), of_others = others.column_counts();
  io::Words columns = 0;
  for (std::size_t l = 0; l < of_rows.size(); ++l) {
    columns = std::max(columns, io::Words(3) * (of_rows[l] + of_others[l]));
  }
  return io::Words(i.count()) + 1 + io::Words(2) * product_structure(rows, others).nonzeros() +
         columns;
}

io::Traffic OuterProduct::cost(const CsrMatrix& A, const CsrMatrix& B) const {
  const io::Words c_a = io::tiles(A.rows, rows_a), c_b = io::tiles(B.rows, rows_b);
  const io::Words Z = product_structure(A, B).nonzeros();
  io::Words peak = 0;
  for (const io::Range& i : blocks_of(A.rows, rows_a)) {
    for (const io::Range& j : blocks_of(B.rows, rows_b)) {
      peak = std::max(peak, block_peak(A, B, i, j));
    }
  }
  return {words(c_b * A.rows + c_a * c_b + Z +
                io::Words(3) * (c_b * A.nonzeros() + c_a * B.nonzeros())),
          words(Z), words(peak)};
}

io::Traffic NestedProduct::cost(const CsrMatrix& A, const CsrMatrix& B) const {
  const CsrMatrix structure = product_structure(A, B);
  const io::Words c_a = io::tiles(A.rows, rows_a), c_b = io::tiles(B.rows, rows_b);
  const io::Words Z = structure.nonzeros();
  io::Words peak = 0;
  for (const io::Range& i : blocks_of(A.rows, rows_a)) {
    for (const io::Range& j : blocks_of(B.rows, rows_b)) {
      peak = std::max(peak, csr_words(A, i) + csr_words(B, j) + i.count() + 1 +
                                io::Words(2) * entries(structure, i, j));
    }
  }
  return {words((c_b + 1) * A.rows + io::Words(2) * c_a * c_b + c_a + io::Words(2) * A.nonzeros() +
                c_a * (io::Words(B.rows) + io::Words(2) * B.nonzeros()) + Z),
          words(Z), words(peak)};
}

}  // namespace attest::sparse
