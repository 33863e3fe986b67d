#pragma once

#include "gpu/kernels/block_flash2/listed_tiles.cuh"
#include "gpu/kernels/flash2/flash2.cuh"
#include "gpu/kernels/tiles/backward_lines.cuh"

/// Block-sparse FlashAttention in float32, forward and backward: gpu/flash2's tiles, those that the
/// lists of a block mask name. Blocks of any size: larger ones than a tile are met tile by tile,
/// smaller ones are pairs of a tile that are masked. Without a block mask every tile that window
/// and lengths leave.
///
/// Grid:   forward and dQ a block for each 32 queries of a (batch, query head), then dK and dV one
///         for each 32 keys of a (batch, key head), which goes through the query heads of its
///         group.
/// Shared: as gpu/flash2, and one ListedTile.
/// Words:  those of the schedules block_flash2:bq=32,bk=32 and block_two_pass:bq=32,bk=p,cq=p,ck=32
///         but for the lists: the schedules' name tiles, these blocks. Each query head reads 4
///         words and an index word for each entry of every list that a tile's rows meet; dK and dV
///         by_key's, the others by_query's. Without a mask those of flash2 and two_pass.
///         [gpu/kernels/block_flash2/block_flash2_test "words"]
/// Source: Dao et al. 2022, Algorithm 5 (differs: queries stay, as in Dao 2023, Algorithm 1; dQ
///         and dK, dV have a pass each, so that equal calls give equal bits).
namespace attest::gpu {
inline namespace ATTEST_SIMT_WORLD {

template <class Tile, int kColumns, class Mem>
__global__ void __launch_bounds__(Tile::kLanes, 1) block_flash2_forward(ForwardArguments<Mem> a) {
  Mem mem(a.sink);
  ATTEST_DYNAMIC_SHARED(float, shared);
  const QueryBlock block = query_block(mem, a.shape, a.mask, blockIdx.x, Tile::kBlockQ);
  if (block.rows.count > 0) {
    RowSums<Tile::kRows, kColumns> sums;
    attend<Tile>(mem, a, block,
                 ListedTiles::keys<Tile::kBlockQ, Tile::kBlockK>(mem, a.shape, a.mask,
                                                                 block.sequence, block.rows),
                 shared, sums);
    sums.template store_O<float>(mem, block, a.shape.head_dim_v, a.O, a.o);
    if (a.LSE) sums.store_LSE(mem, block, a.LSE, a.lse);
  }
  mem.flush();
}

/// dQ and D.
template <class Tile, class Mem>
__global__ void __launch_bounds__(Tile::kLanes, 1)
    block_two_pass_queries(BackwardArguments<Mem> a) {
  Mem mem(a.sink);
  query_gradients<Tile, DeltaSource::formed, ListedTiles>(mem, a);
  mem.flush();
}

/// dK and dV, after block_two_pass_queries.
template <class Tile, class Mem>
__global__ void __launch_bounds__(Tile::kLanes, 1) block_two_pass_keys(BackwardArguments<Mem> a) {
  Mem mem(a.sink);
  key_gradients<Tile, KeySums::dK_dV, ListedTiles>(mem, a);
  mem.flush();
}

inline BlockLine with_listed_tile(BlockLine line) {
  line.static_shared_bytes += static_cast<std::int64_t>(sizeof(ListedTile));
  return line;
}

/// launch(name, line, kernel, arguments...) for its one launch.
///
/// Requires: head_dim_v at most kMostColumns.
template <class Tile = Flash2, class Mem, class Launch>
void block_flash2_launches(const ForwardArguments<Mem>& a, Launch&& launch) {
  with_columns(a.shape.head_dim_v, [&]<int kColumns>() {
    launch(kernel_name("block_flash2_forward", Tile::name(), kColumns),
           with_listed_tile(Tile::line(a.shape)), block_flash2_forward<Tile, kColumns, Mem>, a);
  });
}

/// The same for both passes in turn.
///
/// Requires: head dimensions of at most kMostBackwardColumns.
template <class Mem, class Launch>
void block_two_pass_launches(const BackwardArguments<Mem>& a, Launch&& launch) {
  with_backward_tile(widest_head(a.shape), [&](auto tile) {
    using Tile = decltype(tile);
    launch(kernel_name("block_two_pass_queries", Tile::name()),
           with_listed_tile(query_line(tile, a.shape)), block_two_pass_queries<Tile, Mem>, a);
    launch(kernel_name("block_two_pass_keys", Tile::name()),
           with_listed_tile(key_line(tile, a.shape)), block_two_pass_keys<Tile, Mem>, a);
  });
}

}  // namespace ATTEST_SIMT_WORLD
}  // namespace attest::gpu
