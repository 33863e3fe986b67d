#pragma once

#include <cstdint>
#include <vector>

#include "schedules/engine/head.hpp"

namespace attest::cpu {

/// Which tiles of the score matrix hold a visible pair: block_q x block_k tiles, the last ones
/// ragged. Tiles without one are not visited by the schedules that keep no score matrix.
/// [schedules/walks/tile_map_test]
class TileMap {
 public:
  /// Requires: blocks >= 1.
  TileMap(const ScoreRule& rule, std::int64_t q, std::int64_t k, std::int64_t block_q,
          std::int64_t block_k);

  /// Place of a tile among those that its query block meets, keys ascending: the first, or later.
  enum class Visit : std::uint8_t { first, later };
  struct Run {
    io::Range rows;
    Visit visit;
  };

  /// Extents cut where the pattern of visited tiles changes: blocks within one range are alike.
  std::vector<io::Range> query_groups() const;
  std::vector<io::Range> key_groups() const;

  /// Keys that a block of queries visits, as runs of whole tiles.
  std::vector<io::Range> key_runs(io::Range queries) const;

  /// Queries that visit a block of keys.
  std::vector<Run> query_runs(io::Range keys) const;

  /// Query blocks that visit no keys, as ranges of queries.
  std::vector<io::Range> idle_queries() const;

  struct Shape {
    std::int64_t queries, keys;
  };

  /// Sums over visited tiles: of their queries and of their keys; then queries and keys of blocks
  /// that visit any; and the shapes that occur.
  struct Sums {
    io::Words tile_queries, tile_keys, queries, keys;
    std::vector<Shape> shapes;

    /// The largest value of a function of (queries, keys) over the shapes; nothing without any.
    template <class Function>
    io::Amount largest(const Function& function) const {
      io::Amount most;
      for (const Shape& shape : shapes) {
        most = io::larger(most, function(io::Words(shape.queries), io::Words(shape.keys)));
      }
      return most;
    }
  };
  Sums sums() const;

 private:
  std::int64_t query_tiles() const { return io::tiles(q_, block_q_); }
  std::int64_t key_tiles() const { return io::tiles(k_, block_k_); }
  io::Range queries(io::Range tiles) const;
  io::Range keys(io::Range tiles) const;
  bool visited(std::int64_t query_tile, std::int64_t key_tile) const;
  Sums dense_sums() const;

  std::int64_t q_, k_, block_q_, block_k_;
  bool dense_;                             // every pair is visible
  std::vector<std::int64_t> first_, end_;  // key tiles of the band, per query tile
  std::vector<std::uint8_t> visited_;      // with a boolean mask: (query tile, key tile)
};

}  // namespace attest::cpu
