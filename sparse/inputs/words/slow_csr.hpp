#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "core/sparse_operands/csr_matrix.hpp"
#include "io/machine/slow_memory.hpp"
#include "io/machine/words.hpp"

/// Sparse matrices in slow memory. One word is an offset, a column index or a value: index words
/// cost words. Where the entries of a row lie is known to a schedule as sizes are, from a symbolic
/// phase before it runs; what arithmetic uses of it has been loaded.
namespace attest::sparse {

struct SlowCsr {
  const CsrMatrix* structure = nullptr;
  io::SlowMatrix offsets;  // (rows + 1, 1)
  io::SlowMatrix indices;  // (entries, 1)
  io::SlowMatrix labels;   // (entries, 1): the row of each entry, in place of the offsets
  io::MutableSlowMatrix values;

  std::int64_t rows() const { return structure->rows; }
  std::int64_t columns() const { return structure->columns; }

  /// The entries of some rows.
  io::Range entries(io::Range rows) const;
};

/// Owns what a SlowCsr shows. Indices lie in slow memory as the bits of a float32 word.
class CsrStore {
 public:
  /// Requires: fewer than 2^31 entries. Else throws InvalidProblem.
  explicit CsrStore(CsrMatrix matrix);
  CsrStore(const CsrStore&) = delete;
  CsrStore& operator=(const CsrStore&) = delete;

  const CsrMatrix& matrix() const { return matrix_; }
  SlowCsr slow();

 private:
  CsrMatrix matrix_;
  std::vector<float> offsets_, indices_, labels_;
};

/// A matrix cut into blocks of rows x columns (the last ones smaller), each with indices of its
/// own.
CsrMatrix block_of(const CsrMatrix& matrix, io::Range rows, io::Range columns);

/// 0 .. extent-1 in blocks.
std::vector<io::Range> blocks_of(std::int64_t extent, std::int64_t block);

/// A matrix cut into blocks of rows x columns, [columns][rows], each compressed by itself.
class CsrGrid {
 public:
  CsrGrid(const CsrMatrix& matrix, std::int64_t block_rows, std::int64_t block_columns);

  std::vector<std::vector<SlowCsr>> slow();

 private:
  std::vector<std::vector<std::unique_ptr<CsrStore>>> blocks_;
};

/// The pairs of rows of A and B that share a column, with values 0: the structure of A B^T.
/// [sparse/inputs/schedules/schedules_test "structure"]
CsrMatrix product_structure(const CsrMatrix& A, const CsrMatrix& B);

/// Some rows of a matrix in fast memory: count + 1 offsets, and two words an entry.
template <class M>
struct CsrTiles {
  using Loaded = decltype(std::declval<M&>().load(std::declval<io::SlowMatrix>(), ""));

  CsrTiles(M& machine, const SlowCsr& matrix, io::Range rows, const char* name)
      : offsets(machine.load(matrix.offsets.block({rows.begin, rows.end + 1}), name)),
        indices(machine.load(matrix.indices.block(matrix.entries(rows)), name)),
        values(machine.load(matrix.values.block(matrix.entries(rows)), name)) {}

  Loaded offsets, indices, values;
};

/// The same, each entry with its own label: three words an entry and none for rows without one.
template <class M>
struct LabelledTiles {
  LabelledTiles(M& machine, const SlowCsr& matrix, io::Range rows, const char* name)
      : labels(machine.load(matrix.labels.block(matrix.entries(rows)), name)),
        indices(machine.load(matrix.indices.block(matrix.entries(rows)), name)),
        values(machine.load(matrix.values.block(matrix.entries(rows)), name)) {}

  typename CsrTiles<M>::Loaded labels, indices, values;
};

}  // namespace attest::sparse
