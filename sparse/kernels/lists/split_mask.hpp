#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/abi/attest_kernel.h"
#include "cpu/kernels/tiles/geometry.hpp"
#include "cpu/kernels/tiles/tensor_io.hpp"
#include "sparse/kernels/block_tiles.hpp"
#include "sparse/kernels/gathered.hpp"
#include "sparse/kernels/lists/owned_lists.hpp"
#include "sparse/kernels/lists/pair_lists.hpp"
#include "sparse/kernels/lists/pair_split.hpp"
#include "sparse/kernels/packed_rows.hpp"
#include "sparse/kernels/tasks.hpp"

namespace attest::sparse {

/// The keys of some rows that exist.
inline Rows existing(Rows keys, const cpu::Batch& batch) {
  return {keys.first, std::clamp<std::int64_t>(batch.keys - keys.first, 0, keys.count)};
}

/// Tiles and single pairs that a problem's mask leaves: those of split_pairs of a CSR mask; else
/// the tiles of BlockTiles, and no single pair.
class SplitMask {
 public:
  /// `by_key`: single_queries will be asked. Requires: the problem outlives this.
  SplitMask(const attest_problem& problem, bool by_key);
  SplitMask(const SplitMask&) = delete;
  SplitMask& operator=(const SplitMask&) = delete;

  const BlockTiles& tiles() const { return tiles_; }
  bool has_singles() const { return !split_.singles.indices.empty(); }

  /// Single keys of query i, and single queries of key j. Requires: by_key, j < batch.keys.
  RowList single_keys(const cpu::Batch& batch, std::int64_t i) const;
  RowList single_queries(const cpu::Batch& batch, std::int64_t j) const;

  /// S(keys, lanes) of a tile becomes -inf where the CSR mask has no pair; queries are in lanes.
  /// [sparse/kernels/lists/split_mask_test "every pair in a tile or single"]
  void hide(Rows queries, Rows keys, std::int64_t lanes, float* S) const;

  /// Returns rows of K or V of some keys with zeros for keys that no query sees, in `tile` where
  /// there are any: they must not be multiplied, for a NaN times a weight of 0 is a NaN. `rows`:
  /// from the first key on.  [sparse/kernels/kernels_test "keys that no query sees"]
  cpu::RowsView seen_rows(const cpu::Batch& batch, Rows keys, const SequenceRows& rows,
                          float* tile) const;

  /// Tasks for the queries of every head, and for the keys of every head of K, among them the keys
  /// that are stored but do not exist.  [sparse/kernels/lists/split_mask_test "tasks cover all
  /// rows"]
  std::vector<Task> query_tasks() const;
  std::vector<Task> key_tasks() const;

 private:
  // Tells whether a query sees key j; without a CSR mask, true. Requires: j < batch.keys.
  bool is_seen(const cpu::Batch& batch, std::int64_t j) const {
    return seen_.empty() || seen_[static_cast<std::size_t>(first_key(problem_, batch) + j)] != 0;
  }
  bool is_split() const { return tile_problem_.mask.blocks == &block_mask_; }

  const attest_problem& problem_;
  bool by_key_;
  std::vector<std::uint8_t> seen_;  // of all stored keys, where there is a CSR mask
  PairSplit split_;
  OwnedLists tiles_by_key_, singles_by_key_;
  attest_block_mask block_mask_;
  attest_csr_mask csr_mask_;
  attest_problem tile_problem_, single_problem_;
  BlockTiles tiles_;
};

}  // namespace attest::sparse
