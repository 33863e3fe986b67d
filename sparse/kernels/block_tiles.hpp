#pragma once

#include <algorithm>
#include <cstdint>

#include "core/abi/attest_kernel.h"
#include "core/mask/sparsity/blocks_of.hpp"
#include "cpu/kernels/tiles/geometry.hpp"
#include "sparse/kernels/tasks.hpp"

/// Which tiles of queries and keys a problem's block mask leaves. Without one, every tile that band
/// and key lengths leave.
namespace attest::sparse {

/// The most rows of a tile.
inline constexpr std::int64_t kTile = 64;

/// One side of the score matrix, cut into blocks, and blocks of more than kTile rows into tiles.
/// Tiles are numbered from 0 on, without gaps where blocks are cut by the end of a sequence.
class Cut {
 public:
  /// Requires: block >= 1.
  Cut(std::int64_t block, std::int64_t longest)
      : block_(std::clamp<std::int64_t>(block, 1, std::max<std::int64_t>(longest, 1))) {}

  std::int64_t blocks(std::int64_t length) const { return blocks_of(length, block_); }
  std::int64_t tiles(std::int64_t length) const { return blocks(length) * tiles_of_block(); }
  std::int64_t block_of(std::int64_t tile) const { return tile / tiles_of_block(); }

  /// Without rows where the sequence ends before.
  Rows tile(std::int64_t number, std::int64_t length) const {
    const std::int64_t within = number % tiles_of_block() * kTile;
    const std::int64_t first = block_of(number) * block_ + within;
    return {first, std::clamp<std::int64_t>(length - first, 0, std::min(kTile, block_ - within))};
  }

  /// visit(Rows) for the tiles of a block that have rows.
  template <class Visit>
  void for_tiles_of(std::int64_t block, std::int64_t length, const Visit& visit) const {
    for (std::int64_t part = 0; part < tiles_of_block(); ++part) {
      const Rows rows = tile(block * tiles_of_block() + part, length);
      if (rows.count > 0) visit(rows);
    }
  }

 private:
  std::int64_t tiles_of_block() const { return blocks_of(block_, kTile); }

  std::int64_t block_;
};

class BlockTiles {
 public:
  explicit BlockTiles(const attest_problem& problem)
      : problem_(problem),
        mask_(problem.mask.blocks),
        queries_(mask_ != nullptr ? mask_->block_q : kTile, problem.seqlen_q),
        keys_(mask_ != nullptr ? mask_->block_k : kTile, problem.seqlen_k) {}

  const Cut& queries() const { return queries_; }
  const Cut& keys() const { return keys_; }

  /// visit(Rows) for the key tiles that tile `number` of the queries meets, ascending.
  /// [sparse/kernels/tiles_test "every visible pair once"]
  template <class Visit>
  void for_keys(const cpu::Batch& batch, std::int64_t number, const Visit& visit) const {
    const Rows rows = queries_.tile(number, batch.q_length);
    if (rows.count == 0) return;
    const cpu::KeySpan span = cpu::visible_keys(problem_, batch, rows.first, rows.count);
    for_listed(mask_ != nullptr ? &mask_->by_query : nullptr, queries_.block_of(number),
               keys_.blocks(batch.keys), [&](std::int64_t block) {
                 keys_.for_tiles_of(block, batch.keys, [&](Rows keys) {
                   if (overlap(span, keys)) visit(keys);
                 });
               });
  }

  /// visit(Rows) for the query tiles that tile `number` of the keys meets, ascending.
  /// [sparse/kernels/tiles_test "every visible pair once"]
  template <class Visit>
  void for_queries(const cpu::Batch& batch, std::int64_t number, const Visit& visit) const {
    const Rows keys = keys_.tile(number, batch.keys);
    if (keys.count == 0) return;
    for_listed(mask_ != nullptr ? &mask_->by_key : nullptr, keys_.block_of(number),
               queries_.blocks(batch.q_length), [&](std::int64_t block) {
                 queries_.for_tiles_of(block, batch.q_length, [&](Rows rows) {
                   const cpu::KeySpan span =
                       cpu::visible_keys(problem_, batch, rows.first, rows.count);
                   if (overlap(span, keys)) visit(rows);
                 });
               });
  }

 private:
  static bool overlap(const cpu::KeySpan& span, Rows keys) {
    return span.begin < keys.first + keys.count && keys.first < span.end;
  }

  // The listed blocks below `end`, or all of them.
  template <class Visit>
  static void for_listed(const attest_lists* lists, std::int64_t line, std::int64_t end,
                         const Visit& visit) {
    if (lists == nullptr) {
      for (std::int64_t block = 0; block < end; ++block) visit(block);
      return;
    }
    for (std::int64_t n = lists->offsets[line]; n < lists->offsets[line + 1]; ++n) {
      if (lists->indices[n] < end) visit(lists->indices[n]);
    }
  }

  const attest_problem& problem_;
  const attest_block_mask* mask_;
  Cut queries_, keys_;
};

}  // namespace attest::sparse
