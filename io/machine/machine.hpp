#pragma once

#include <concepts>
#include <cstdint>
#include <vector>

#include "io/machine/slow_memory.hpp"
#include "io/machine/tile_view.hpp"

/// Interface that schedules are written against. A schedule says which tiles move when, and nothing
/// else.
///
///   load(block, name)           a read-only tile with the block's elements
///   scratch(rows, columns, name) a tile with undefined contents
///   load_into(tile, block)      the block's elements into a tile of the same shape
///   stream(block, name)         the block's elements, row by row, through one word of fast memory:
///                               the next operation uses each of them once, in that order
///   store(tile, block)          the tile's elements to slow memory
///   stream_out(block, name)     words that leave one by one, in an operation, from where they are
///   compute(operation, tiles…)  arithmetic; operations see elements, schedules do not
///   workspace(rows, cols, name) a float32 matrix in slow memory, as long as the machine lives
///   for_tiles(range, block, body)       body(Range) for each block of the range, in order
///   parallel_tiles(range, block, body)  body(machine, Range) for each, in any order, each with
///                                       fast memory of its own
///
/// Both loops also take a list of ranges that follow each other: blocks are equal within a range.
///
/// A tile occupies fast memory as long as it lives. Tiles neither move nor copy. A machine may
/// call a body of for_tiles once for several blocks of equal length when it does not hold data: a
/// body must do the same whichever block it is given.
namespace attest::io {

namespace detail {

struct NoOperation {
  void operator()(TileView, ConstTileView) const {}
};

struct NoBody {
  void operator()(Range) const {}
  template <class M>
  void operator()(M&, Range) const {}
};

}  // namespace detail

template <class M>
concept Machine = requires(M machine, const SlowMatrix& in, const MutableSlowMatrix& out,
                           std::int64_t n) {
  { machine.load(in, "Q").rows() } -> std::same_as<std::int64_t>;
  { machine.load(in, "Q").columns() } -> std::same_as<std::int64_t>;
  { machine.scratch(n, n, "S").rows() } -> std::same_as<std::int64_t>;
  machine.stream(in, "K");
  machine.stream_out(out, "dS");
  requires requires(decltype(machine.scratch(n, n, "S"))& tile) {
    machine.load_into(tile, in);
    machine.store(tile, out);
    machine.compute(detail::NoOperation{}, tile, tile);
  };
  { machine.workspace(n, n, "S") } -> std::same_as<MutableSlowMatrix>;
  machine.for_tiles(Range{}, n, detail::NoBody{});
  machine.for_tiles(std::vector<Range>{}, n, detail::NoBody{});
  machine.parallel_tiles(Range{}, n, detail::NoBody{});
  machine.parallel_tiles(std::vector<Range>{}, n, detail::NoBody{});
};

}  // namespace attest::io
