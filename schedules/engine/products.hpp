#pragma once

#include "io/machine/machine.hpp"
#include "io/machine/words.hpp"
#include "schedules/engine/operations.hpp"

/// Matrix products as schedules: C tile by tile, with what is to be done to a tile before it is
/// stored.
namespace attest::schedules {

/// C (m, n) = A B with inner extent l, in one of the forms of Product.
struct ProductTask {
  io::SlowMatrix A, B;
  io::MutableSlowMatrix C;
  Form form = Form::plain;
  Sums sums = Sums::fresh;  // continued: C begins as C_before
  io::SlowMatrix C_before{};

  std::int64_t inner() const { return form == Form::first_transposed ? A.rows() : A.columns(); }
  io::SlowMatrix a(io::Range rows, io::Range depth) const {
    return form == Form::first_transposed ? A.block(depth, rows) : A.block(rows, depth);
  }
  io::SlowMatrix b(io::Range depth, io::Range columns) const {
    return form == Form::second_transposed ? B.block(columns, depth) : B.block(depth, columns);
  }
};

/// One word of either operand.
struct ProductWords {
  io::Amount a, b;
};

/// Zeros, or what the sums were before.
template <class M, class Tile>
void begin_sum(M& machine, Tile& tile, Sums sums, const io::SlowMatrix& before, io::Range rows,
               io::Range columns) {
  if (sums == Sums::continued) {
    machine.load_into(tile, before.block(rows, columns));
  } else {
    machine.compute(Fill{0}, tile);
  }
}

/// Nothing is done to the tiles of C before they are stored.
struct AsTheyAre {
  template <class M, class Tile>
  void operator()(M&, Tile&, io::Range, io::Range) const {}
};

/// Runs the tiles of C in one block of its rows, by what `product` adds to each.
template <io::Machine M, class P, class Finish>
void run_product_rows(M& machine, const P& product, const ProductTask& task, io::Range i,
                      const Finish& finish) {
  machine.for_tiles(all_columns(task.C), product.columns, [&](io::Range j) {
    auto C = machine.scratch(i.count(), j.count(), task.C.name());
    begin_sum(machine, C, task.sums, task.C_before, i, j);
    product.add(machine, C, task, i, j);
    finish(machine, C, i, j);
    machine.store(C, task.C.block(i, j));
  });
}

/// C tiles of rows x columns stay; panels of A and B of the given depth pass by.
struct TiledProduct {
  std::int64_t rows, columns, depth;

  /// finish(machine, tile, rows, columns) works on a tile of C before it is stored.
  /// Cost:  reads = m l ceil(n/columns) + l n ceil(m/rows) and m n when continued, writes = m n,
  ///        peak = i j + (i + j) min(depth, l) with i = min(rows, m), j = min(columns, n), and what
  ///        `finish` takes.  [schedules/forward_test "closed forms"]
  template <io::Machine M, class Finish = AsTheyAre>
  void run(M& machine, const ProductTask& task, const Finish& finish = {}) const {
    machine.parallel_tiles(all_rows(task.C), rows,
                           [&](auto& block, io::Range i) { run_rows(block, task, i, finish); });
  }

  /// The part of run() for one block of rows of C.
  template <io::Machine M, class Finish = AsTheyAre>
  void run_rows(M& machine, const ProductTask& task, io::Range i, const Finish& finish = {}) const {
    run_product_rows(machine, *this, task, i, finish);
  }

  /// Adds the product to a tile in fast memory, rows i and columns j of C.
  template <io::Machine M, class Tile>
  void add(M& machine, Tile& C, const ProductTask& task, io::Range i, io::Range j) const {
    machine.for_tiles(io::Range{0, task.inner()}, depth, [&](io::Range l) {
      const auto A = machine.load(task.a(i, l), task.A.name());
      const auto B = machine.load(task.b(l, j), task.B.name());
      machine.compute(Product{task.form}, C, A, B);
    });
  }

  /// Returns what passes beside an i x j tile as l products are added to each of its words.
  io::Amount operands(const ProductWords& words, io::Words i, io::Words j, io::Words l) const;

  io::Traffic cost(const ProductTask& task) const;
};

/// C tiles of rows x columns stay; A passes by column after column and B word by word.
struct Rank1Product {
  std::int64_t rows, columns;

  /// Cost:  reads and writes as TiledProduct, peak = i j + i + 1, and what `finish` takes.
  ///        [schedules/forward_test "closed forms"]
  template <io::Machine M, class Finish = AsTheyAre>
  void run(M& machine, const ProductTask& task, const Finish& finish = {}) const {
    machine.parallel_tiles(all_rows(task.C), rows,
                           [&](auto& block, io::Range i) { run_rows(block, task, i, finish); });
  }

  template <io::Machine M, class Finish = AsTheyAre>
  void run_rows(M& machine, const ProductTask& task, io::Range i, const Finish& finish = {}) const {
    run_product_rows(machine, *this, task, i, finish);
  }

  /// Adds the product to a tile in fast memory, rows i and columns j of C.
  template <io::Machine M, class Tile>
  void add(M& machine, Tile& C, const ProductTask& task, io::Range i, io::Range j) const {
    machine.for_tiles(io::Range{0, task.inner()}, 1, [&](io::Range l) {
      const auto column = machine.load(task.a(i, l), task.A.name());
      const auto words = machine.stream(task.b(l, j), task.B.name());
      machine.compute(Product{task.form}, C, column, words);
    });
  }

  /// Returns what passes beside an i x j tile as l products are added to each of its words.
  static io::Amount operands(const ProductWords& words, io::Words i, io::Words j, io::Words l);

  io::Traffic cost(const ProductTask& task) const;
};

/// All elements of a matrix.
io::Amount amount(const io::SlowMatrix& matrix);

/// Bytes of one element.
inline io::Amount word(const io::SlowMatrix& matrix) {
  return {1, static_cast<std::int64_t>(size_bytes(matrix.dtype()))};
}

}  // namespace attest::schedules
