#pragma once

#include <memory>
#include <vector>

#include "io/machine/machine.hpp"
#include "io/machine/words.hpp"
#include "sparse/inputs/operations.hpp"
#include "sparse/inputs/words/attention_words.hpp"
#include "sparse/inputs/words/entry_sums.hpp"
#include "sparse/inputs/words/slow_csr.hpp"

/// One sparse product C = A B^T over a semiring, the operation the papers bound, in both of their
/// forms. The structure of C is known from a symbolic phase; C lies in blocks of rows of A x rows
/// of B, each compressed by itself, and its index words are read.
namespace attest::sparse {

/// Matrices that a product schedule sees: A and B by blocks of rows, C by blocks of both.
struct SlowProduct {
  std::vector<SlowCsr> A, B;
  std::vector<std::vector<SlowCsr>> C;
};

/// How the blocks of A and B are compressed.
enum class Compressed : std::uint8_t { by_rows, by_columns };

/// Owns A, B and C, cut and compressed as a schedule needs them.
class ProductStore {
 public:
  struct Cut {
    std::int64_t rows_a, rows_b;
    Compressed inputs;
  };
  ProductStore(const CsrMatrix& A, const CsrMatrix& B, const Cut& cut);

  SlowProduct slow();

  /// C put together.
  CsrMatrix result() const;

 private:
  using Stores = std::vector<std::unique_ptr<CsrStore>>;
  static Stores cut_rows(const CsrMatrix& matrix, std::int64_t rows, Compressed inputs);

  CsrMatrix structure_;
  Cut cut_;
  Stores A_, B_;
  std::vector<Stores> C_;
};

/// The structure of a block of C in fast memory with room for its values.
template <class M>
struct ProductTile {
  ProductTile(M& machine, const SlowCsr& block)
      : offsets(machine.load(block.offsets, "C")),
        indices(machine.load(block.indices, "C")),
        values(machine.scratch(block.values.rows(), 1, "C")) {
    machine.compute(FillWith{0}, values);
  }

  typename CsrTiles<M>::Loaded offsets, indices;
  decltype(std::declval<M&>().scratch(1, 1, "C")) values;
};

/// A block of C stays, columns of A and B meet: nnz sqrt(Z/M) words for blocks with M entries, the
/// form for small M. Inputs compressed by columns, every entry with the label of its column: a
/// block has few entries in a column, mostly none.
///
/// Cost:   with c = ceil(m/rows_a), c' = ceil(n/rows_b), Z entries of C
///         reads = c'm + c c' + Z + 3c' nnz(A) + 3c nnz(B), writes = Z,
///         peak = max over blocks and columns of i + 1 + 2 Z_ij + 3 (entries of both columns)
///         [sparse/inputs/schedules/schedules_test "closed forms"]
/// Source: Pagh and Stockel 2014 (differs: blocks of rows as they come, not balanced).
struct OuterProduct {
  std::int64_t rows_a, rows_b;
  static constexpr Compressed kInputs = Compressed::by_columns;

  template <io::Machine M>
  void run(M& machine, const SlowProduct& task, float factor = 1) const {
    for (std::size_t i = 0; i < task.A.size(); ++i) {
      for (std::size_t j = 0; j < task.B.size(); ++j) {
        run_block(machine, task, i, j,
                  [&](auto& C) { machine.compute(Multiply{factor}, C.values); });
      }
    }
  }

  /// One block of C; finish(C) works on its tile before the values are stored.
  template <io::Machine M, class Finish>
  void run_block(M& machine, const SlowProduct& task, std::size_t i, std::size_t j,
                 const Finish& finish) const {
    ProductTile C(machine, task.C[i][j]);
    for (std::int64_t l = 0; l < task.A[i].rows(); ++l) {
      const LabelledTiles a(machine, task.A[i], {l, l + 1}, "A");
      const LabelledTiles b(machine, task.B[j], {l, l + 1}, "B");
      machine.compute(OuterUpdate{}, C.values, C.offsets, C.indices, a.labels, a.indices, a.values,
                      b.labels, b.indices, b.values);
    }
    finish(C);
    machine.store(C.values, task.C[i][j].values);
  }

  io::Traffic cost(const CsrMatrix& A, const CsrMatrix& B) const;
  io::Traffic cost(const CsrMatrix& A, const CsrMatrix& B, const EntrySums& structure) const;
};

/// The fast memory OuterProduct needs for each block of C, given the structure of C.
class OuterPeaks {
 public:
  OuterPeaks(const OuterProduct& schedule, const CsrMatrix& A, const CsrMatrix& B,
             const EntrySums& structure);

  /// Returns the peak of the block of C for the i-th rows of A and the j-th of B.
  io::Words of(std::size_t i, std::size_t j) const;
  io::Words largest() const;

 private:
  // Entries in each column of some rows.
  struct Block {
    io::Range rows;
    std::vector<std::int32_t> in_column;
  };
  static std::vector<Block> blocks(const CsrMatrix& matrix, std::int64_t rows);

  const EntrySums& structure_;
  std::vector<Block> A_, B_;
};

/// Blocks of A stay, blocks of B pass by: nnz(A) nnz(B) / M words for blocks of A with M entries,
/// the form for large M. Inputs compressed by rows.
///
/// Cost:   reads = (c' + 1) m + 2c c' + c + 2 nnz(A) + c (n + 2 nnz(B)) + Z, writes = Z,
///         peak = max over blocks of words A_i + words B_j + i + 1 + 2 Z_ij
///         [sparse/inputs/schedules/schedules_test "closed forms"]
/// Source: Li et al. 2024, the large-cache case of theorem 4.5 (differs: sizes in full).
struct NestedProduct {
  std::int64_t rows_a, rows_b;
  static constexpr Compressed kInputs = Compressed::by_rows;

  template <io::Machine M>
  void run(M& machine, const SlowProduct& task, float factor = 1) const {
    for (std::size_t i = 0; i < task.A.size(); ++i) {
      const CsrTiles A(machine, task.A[i], {0, task.A[i].rows()}, "A");
      for (std::size_t j = 0; j < task.B.size(); ++j) {
        const CsrTiles B(machine, task.B[j], {0, task.B[j].rows()}, "B");
        ProductTile C(machine, task.C[i][j]);
        machine.compute(InnerProducts{}, C.values, C.offsets, C.indices, A.offsets, A.indices,
                        A.values, B.offsets, B.indices, B.values);
        machine.compute(Multiply{factor}, C.values);
        machine.store(C.values, task.C[i][j].values);
      }
    }
  }

  io::Traffic cost(const CsrMatrix& A, const CsrMatrix& B) const;
  io::Traffic cost(const CsrMatrix& A, const CsrMatrix& B, const EntrySums& structure) const;
};

}  // namespace attest::sparse
