#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "io/machine/dry_machine.hpp"
#include "io/machine/words.hpp"

namespace attest::schedules {

/// The side whose blocks of rows stay in fast memory while tiles of the other side pass by.
enum class Stay : std::uint8_t { queries, keys };

/// Place of a tile among those that its queries meet, keys ascending: the first, or later.
enum class Visit : std::uint8_t { first, later };

/// A tile of the score matrix that passes by. A walk whose queries stay need not tell `visit`.
struct PassingTile {
  io::Range queries, keys;
  Visit visit = Visit::first;
};

/// The order in which a schedule meets the tiles of the score matrix that hold a visible pair. A
/// walk that learns of them from index words reads these through the machine.
///
///   blocks()              the blocks that stay, as a machine's loops take them
///   open(machine, block)  the tiles of a block: empty(), and for_each(body(PassingTile)),
///   ascending
///
/// TileMap skips tiles for free, TileList reads a list of them; both also have
///
///   (rule, q, k, block_q, block_k, Stay)        the constructor
///   sums_of(rule, q, k, block_q, block_k, Stay)  WalkSums, without index words in memory
///   for_idle(machine, body(machine, queries))    each block of queries without a tile
///   kLists                                       whether index words are read
template <class W>
concept Walk = requires(const W& walk, io::DryMachine& machine) {
  machine.parallel_tiles(walk.blocks(), 1, io::detail::NoBody{});
  { walk.open(machine, io::Range{}).empty() } -> std::same_as<bool>;
  walk.open(machine, io::Range{}).for_each([](const PassingTile&) {});
};

/// Sums over a walk that closed forms need.
struct WalkSums {
  io::Words tile_queries, tile_keys, pairs;  // over tiles
  io::Words queries, keys;                   // of blocks that have a tile
  std::int64_t idle_queries = 0;             // the largest block of queries without a tile
  io::Words index_words, bit_words;          // that a walk through all blocks reads
  io::Words idle_words;                      // that for_idle reads
  std::int64_t lists = 0;                    // blocks, of a walk that reads lists

  struct Shape {
    std::int64_t queries, keys;
    std::int64_t record_words = 0;  // that stay while the tile passes
    friend auto operator<=>(const Shape&, const Shape&) = default;
  };
  /// How many tiles of a shape there are.
  struct Counted {
    Shape shape;
    io::Words tiles;
  };
  std::vector<Counted> shapes;

  io::Words words() const { return index_words + bit_words; }

  /// The words of an open block, two offsets of a list; of for_idle, an index.
  io::Words open_words() const { return lists > 0 ? 2 : 0; }
  io::Words idle_word() const { return idle_words > 0 ? 1 : 0; }

  /// The largest value of a function of (queries, keys, record words) over the tiles, beside
  /// `alone`.
  template <class Function>
  io::Amount largest(io::Amount alone, const Function& function) const {
    io::Amount most = alone;
    for (const auto& [shape, tiles] : shapes) {
      most = io::larger(most, function(io::Words(shape.queries), io::Words(shape.keys),
                                       io::Words(shape.record_words)));
    }
    return most;
  }
};

}  // namespace attest::schedules
