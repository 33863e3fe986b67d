#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "io/machine/machine.hpp"
#include "schedules/engine/head.hpp"
#include "schedules/engine/rolling_buffer.hpp"
#include "schedules/walks/walk.hpp"

namespace attest::schedules {

template <io::Machine M>
class ListedTiles;

/// Tells whether a mask says which pairs there are: a boolean one, or a band.
bool has_pattern(const attest_problem& problem);

/// The walk that reads which tiles hold a visible pair, block_q x block_k and ragged at the ends,
/// from lists in slow memory: index words, which cost as much to read as any other. Blocks that
/// stay have a list each: a block of queries its tiles, keys ascending; or, transposed, a block of
/// keys its tiles, queries ascending. With T blocks the lists are
///
///   T + 1 offsets: the list of block t lies between the offsets t and t + 1
///   a record for each tile: one word with its index, whether it is partial (some of its pairs are
///   not visible) and whether it is the first tile of its queries; of a partial tile then its
///   pairs as bits, row by row, ceil(i j / 32) words
///
/// so CSR is the list of 1 x 1 tiles, which are never partial. Key blocks have a second list, of
/// the query blocks without a tile: their number and their indices.
///
/// Only ListedTiles and for_idle, which pay, say which tiles there are. Closed forms have L for the
/// words of a walk through all lists, r for those of a record, nz_q and nz_k for the queries and
/// keys of the listed tiles, ra and kc for the queries and keys of blocks that have any.
/// [schedules/walks/lists/tile_list_test]
class TileList {
 public:
  static constexpr bool kLists = true;

  struct Entry : PassingTile {
    std::int64_t first_word = 0;  // of its record
    std::int64_t bit_words = 0;
    std::int64_t spans = 0;         // pairs, of each query from its first visible key to its last
    std::int64_t first_column = 0;  // of the tile where tiles lie side by side, in both lists
    std::int64_t number = 0;        // in its list
  };

  /// Blocks of rows in another order: `order` gives the query at each place, of a list of keys the
  /// key, and entries then have places for these. Empty: as they come. Requires: blocks >= 1, an
  /// order only with a boolean mask.
  TileList(const ScoreRule& rule, std::int64_t q, std::int64_t k, std::int64_t block_q,
           std::int64_t block_k, Stay stay, const std::vector<std::int64_t>& order = {});

  /// The blocks that have lists.
  const std::vector<io::Range>& blocks() const { return blocks_; }

  /// The list of a block.
  template <io::Machine M>
  ListedTiles<M> open(M& machine, io::Range block) const {
    return ListedTiles<M>(machine, *this, block);
  }

  /// Columns of all tiles side by side.
  std::int64_t columns() const { return sums_.tile_keys.value(); }

  /// Query blocks without a tile, whose indices are read: body(machine, Range).
  template <io::Machine M, class Body>
  void for_idle(M& machine, const Body& body) const {
    const auto load = [&](std::int64_t word) {
      return machine.load(idle_matrix().block({word, word + 1}), "idle_list");
    };
    { const auto count = load(0); }
    for (std::size_t n = 0; n < idle_.size(); ++n) {
      const auto index = load(static_cast<std::int64_t>(n) + 1);
      body(machine, idle_[n]);
    }
  }

  /// Tiles of the longest list of all batch entries.
  static std::int64_t longest(const attest_problem& problem, std::int64_t block_q,
                              std::int64_t block_k, Stay stay);

  /// A tile of a list without its place.
  struct Sized {
    std::int64_t queries, keys, spans, record_words;
    Visit visit;
  };

  /// Some tiles of a list, at most so many at once: body(tiles, whether they are the first).
  template <class Body>
  static void for_pieces(std::span<const Sized> tiles, std::int64_t held, const Body& body) {
    for (std::size_t begin = 0, count = 0; begin < tiles.size(); begin += count) {
      count = std::min(static_cast<std::size_t>(held), tiles.size() - begin);
      body(tiles.subspan(begin, count), begin == 0);
    }
  }

  /// Each list: the extent of its block, and its tiles.
  /// Cost: time linear in the pairs, memory in the tiles, of lists of queries of one.
  static void for_lists(
      const ScoreRule& rule, std::int64_t q, std::int64_t k, std::int64_t block_q,
      std::int64_t block_k, Stay stay,
      const std::function<void(std::int64_t extent, std::span<const Sized> tiles)>& body);

  const WalkSums& sums() const { return sums_; }

  /// The sums of a list; of a problem without a pattern those of a list of every tile, each
  /// with bits, which no pattern exceeds: tiles are chosen by it.
  static WalkSums sums_of(const ScoreRule& rule, std::int64_t q, std::int64_t k,
                          std::int64_t block_q, std::int64_t block_k, Stay stay,
                          const std::vector<std::int64_t>& order = {});

 private:
  template <io::Machine M>
  friend class ListedTiles;

  void lay_out();
  const char* name() const { return stay_ == Stay::queries ? "tile_list" : "transposed_list"; }
  io::SlowMatrix matrix() const;
  io::SlowMatrix idle_matrix() const;
  io::SlowMatrix places() const;

  Stay stay_;
  std::int64_t block_;
  std::vector<io::Range> blocks_, idle_;
  std::vector<std::vector<Entry>> lists_;
  std::vector<float> words_, idle_words_,
      places_;  // four bytes each: only how many there are matters
  WalkSums sums_;
};

/// The list of one block, open: its two offsets stay in fast memory as long as this lives, the
/// record of a tile as long as the tile is visited.
template <io::Machine M>
class ListedTiles {
 public:
  ListedTiles(M& machine, const TileList& list, io::Range block)
      : machine_(machine),
        list_(list),
        number_(block.begin / list.block_),
        offsets_(machine.load(list.matrix().block({number_, number_ + 2}), list.name())) {}

  bool empty() const { return entries().empty(); }

  /// body(entry) for each tile, its record in fast memory.
  template <class Body>
  void for_each(const Body& body) const {
    visit(body, [](const TileList::Entry& entry) { return 1 + entry.bit_words; });
  }

  /// The same without the bits of partial tiles: for one that has masked them before.
  template <class Body>
  void for_each_index(const Body& body) const {
    visit(body, [](const TileList::Entry&) { return std::int64_t{1}; });
  }

  /// The same with a second word for where the tile lies among tiles side by side: a transposed
  /// list meets them in another order than they were stored in.
  template <class Body>
  void for_each_placed(const Body& body) const {
    for_each_index([&](const TileList::Entry& entry) {
      const io::Range word{entry.number, entry.number + 1};
      const auto place = machine_.load(list_.places().block(word), "tile_places");
      body(entry);
    });
  }

  std::int64_t count() const { return static_cast<std::int64_t>(entries().size()); }

  /// Some of the tiles at once: Held(machine, words of the record, entry, more) at the end of
  /// `held`. Held loads the record and keeps it as long as it lives.
  template <class Held, class... More>
  void hold(io::Range numbers, HeldRows<Held>& held, const More&... more) const {
    for (std::int64_t number = numbers.begin; number < numbers.end; ++number) {
      const TileList::Entry& entry = entries()[static_cast<std::size_t>(number)];
      const io::Range words{entry.first_word, entry.first_word + 1 + entry.bit_words};
      held.add(&machine_, list_.matrix().block(words), entry, more...);
    }
  }

 private:
  using Loaded = decltype(std::declval<M&>().load(std::declval<const io::SlowMatrix&>(), ""));

  const std::vector<TileList::Entry>& entries() const {
    return list_.lists_[static_cast<std::size_t>(number_)];
  }

  template <class Body, class Count>
  void visit(const Body& body, const Count& words_of) const {
    for (const TileList::Entry& entry : entries()) {
      const io::Range words{entry.first_word, entry.first_word + words_of(entry)};
      const auto record = machine_.load(list_.matrix().block(words), list_.name());
      body(entry);
    }
  }

  M& machine_;
  const TileList& list_;
  std::int64_t number_;
  Loaded offsets_;
};

}  // namespace attest::schedules
