#pragma once

#include "io/machine/machine.hpp"

/// A schedule small enough to count by hand, and what a careless author would make of it.
namespace attest::io::testing {

/// y += A x, one row of A at a time.
struct DotRows {
  void operator()(TileView y, ConstTileView A, ConstTileView x) const {
    for (std::int64_t i = 0; i < A.rows; ++i) {
      for (std::int64_t j = 0; j < A.columns; ++j) y.row(i)[0] += A.row(i)[j] * x.row(j)[0];
    }
  }
};

struct Zero {
  void operator()(TileView tile) const {
    for (std::int64_t i = 0; i < tile.rows; ++i) {
      for (std::int64_t j = 0; j < tile.columns; ++j) tile.row(i)[j] = 0;
    }
  }
};

/// Words that leave from where they are.
struct CopyOut {
  void operator()(TileView out, ConstTileView tile) const { out.row(0)[0] = tile.row(0)[0]; }
};

template <class Recorder, class Y, class A, class X>
void trace(Recorder& recorder, const DotRows&, const Y& y, const A& a, const X& x) {
  for (std::int64_t i = 0; i < a.rows(); ++i) {
    for (std::int64_t j = 0; j < a.columns(); ++j) {
      recorder.accumulate(y.word(i, 0), {a.word(i, j), x.word(j, 0)});
    }
  }
}

template <class Recorder, class Tile>
void trace(Recorder& recorder, const Zero&, const Tile& tile) {
  for (std::int64_t i = 0; i < tile.rows(); ++i) {
    for (std::int64_t j = 0; j < tile.columns(); ++j) recorder.clear(tile.word(i, j));
  }
}

template <class Recorder, class Out, class Tile>
void trace(Recorder&, const CopyOut&, const Out& out, const Tile& tile) {
  out.send(0, 0, tile.word(0, 0));
}

enum class Mistake { none, forgets_store, forgets_zero, keeps_row };

/// y = A x with x resident: reads rows * columns + columns, writes rows, peak
/// columns + block * columns + block.
template <Machine M>
void matrix_vector(M& machine, const SlowMatrix& A, const SlowMatrix& x, const MutableSlowMatrix& y,
                   std::int64_t block, Mistake mistake = Mistake::none) {
  const auto resident = machine.load(x, "x");
  machine.for_tiles(Range{0, A.rows()}, block, [&](Range rows) {
    const auto a = machine.load(A.block(rows), "A");
    auto sum = machine.scratch(rows.count(), 1, "y");
    if (mistake == Mistake::keeps_row) {
      const auto again = machine.load(A.block(rows), "A again");
    }
    if (mistake != Mistake::forgets_zero) machine.compute(Zero{}, sum);
    machine.compute(DotRows{}, sum, a, resident);
    if (mistake != Mistake::forgets_store) machine.store(sum, y.block(rows));
  });
}

/// The same with x streamed through one word for each row, rows in parallel: reads
/// rows * 2 columns, peak columns + 2.
template <Machine M>
void matrix_vector_streamed(M& machine, const SlowMatrix& A, const SlowMatrix& x,
                            const MutableSlowMatrix& y) {
  machine.parallel_tiles(Range{0, A.rows()}, 1, [&](M& block, Range row) {
    const auto a = block.load(A.block(row), "A");
    auto sum = block.scratch(1, 1, "y");
    block.compute(Zero{}, sum);
    const auto words = block.stream(x, "x");
    block.compute(DotRows{}, sum, a, words);
    auto out = block.stream_out(y.block(row), "y");
    block.compute(CopyOut{}, out, sum);
  });
}

}  // namespace attest::io::testing
