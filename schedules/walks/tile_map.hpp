#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "schedules/engine/head.hpp"
#include "schedules/walks/walk.hpp"

namespace attest::schedules {

/// Consecutive rows that pass by in tiles, which are alike.
struct TileRun {
  io::Range rows;
  Visit visit = Visit::first;
};

/// The tiles that pass by a block.
template <io::Machine M>
class MappedTiles {
 public:
  MappedTiles(M& machine, Stay stay, io::Range block, std::vector<TileRun> runs,
              std::int64_t length)
      : machine_(machine), stay_(stay), block_(block), runs_(std::move(runs)), length_(length) {}

  bool empty() const { return runs_.empty(); }

  template <class Body>
  void for_each(const Body& body) const {
    for (const TileRun& run : runs_) {
      machine_.for_tiles(run.rows, length_, [&](io::Range rows) {
        const bool keys_pass = stay_ == Stay::queries;
        body(PassingTile{keys_pass ? block_ : rows, keys_pass ? rows : block_, run.visit});
      });
    }
  }

 private:
  M& machine_;
  Stay stay_;
  io::Range block_;
  std::vector<TileRun> runs_;
  std::int64_t length_;
};

/// The walk that knows for free which tiles of the score matrix hold a visible pair: block_q x
/// block_k tiles, the last ones ragged. Tiles without one are not visited by the schedules that
/// keep no score matrix. [schedules/walks/tile_map_test]
class TileMap {
 public:
  static constexpr bool kLists = false;

  /// Requires: blocks >= 1.
  TileMap(const ScoreRule& rule, std::int64_t q, std::int64_t k, std::int64_t block_q,
          std::int64_t block_k, Stay stay);

  /// The extent that stays, cut where the pattern of visited tiles changes: blocks within one range
  /// are alike.
  std::vector<io::Range> blocks() const;

  template <io::Machine M>
  MappedTiles<M> open(M& machine, io::Range block) const {
    return {machine, stay_, block, runs(block), stay_ == Stay::queries ? block_k_ : block_q_};
  }

  /// Rows that pass by a block, as runs of whole tiles.
  std::vector<TileRun> runs(io::Range block) const {
    return stay_ == Stay::queries ? key_runs(block) : query_runs(block);
  }

  template <io::Machine M, class Body>
  void for_idle(M& machine, const Body& body) const {
    for (const io::Range& idle : idle_queries()) machine.parallel_tiles(idle, block_q_, body);
  }

  WalkSums sums() const;
  static WalkSums sums_of(const ScoreRule& rule, std::int64_t q, std::int64_t k,
                          std::int64_t block_q, std::int64_t block_k, Stay stay) {
    return TileMap(rule, q, k, block_q, block_k, stay).sums();
  }

 private:
  std::int64_t query_tiles() const { return io::tiles(q_, block_q_); }
  std::int64_t key_tiles() const { return io::tiles(k_, block_k_); }
  io::Range queries(io::Range tiles) const;
  io::Range keys(io::Range tiles) const;
  bool visited(std::int64_t query_tile, std::int64_t key_tile) const;
  std::vector<TileRun> key_runs(io::Range queries) const;
  std::vector<TileRun> query_runs(io::Range keys) const;
  std::vector<io::Range> idle_queries() const;  // block by block
  // Sums over the tiles of a mask or band; tiles: how many there are of each shape.
  void add_tiles(WalkSums& sums, io::Words (&tiles)[2][2]) const;

  std::int64_t q_, k_, block_q_, block_k_;
  Stay stay_;
  bool dense_;                             // every pair is visible
  std::vector<std::int64_t> first_, end_;  // key tiles of the band, per query tile
  std::vector<std::uint8_t> visited_;      // with a boolean mask: (query tile, key tile)
};

}  // namespace attest::schedules
