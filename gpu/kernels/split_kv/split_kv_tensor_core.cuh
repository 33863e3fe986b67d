#pragma once

#include "gpu/kernels/flash2/flash2_tensor_core.cuh"
#include "gpu/kernels/split_kv/split_kv.cuh"

/// split_kv.cuh with the parts of flash2_tensor_core.cuh, of tensors in bf16 or f16.
///
/// Grid:   split_kv_tensor_core_parts: a block for each 64 queries of a (batch, head), for every
///         part; split_kv_merge: a block for each 64 queries.
/// Words:  those of the schedule split_kv:splits=4,bq=64,bk=32.  [gpu/kernels/schedule_words_test]
/// Source: Dao, Haziza, Massa, Sizov 2023.
namespace attest::gpu {
inline namespace ATTEST_SIMT_WORLD {

template <class Tile, class T, class Mem>
__global__ void __launch_bounds__(Tile::kLanes, 1)
    split_kv_tensor_core_parts(ForwardArguments<Mem, T> a, SplitParts<Mem> parts) {
  static_assert(Tile::kPassing == SplitKv::kBlockK);
  Mem mem(a.sink);
  ATTEST_DYNAMIC_SHARED(unsigned, shared);
  const std::int64_t part = blockIdx.x % SplitKv::kSplits;
  const QueryBlock block =
      query_block(mem, a.shape, a.mask, blockIdx.x / SplitKv::kSplits, Tile::kResident);
  const KeyBand band = block.rows.count > 0 ? band_of_part(a, block, part) : KeyBand{};
  if (block.rows.count > 0 && band_visible(mem, a, block, band)) {
    FragmentRows<Tile> sums;
    attend(mem, a, block, band, shared, sums);
    float inverse[2];
    finish_rows(mem, sums, block, parts.LSE + part * parts.lse_part, parts.lse, inverse);
    const std::int64_t origin = part * parts.o_part + block.origin(parts.o);
    ATTEST_UNROLL
    for (int c = 0; c < Tile::kSums; ++c) {
      ATTEST_UNROLL
      for (int w = 0; w < 4; ++w) {
        const int row = warp_row<Tile>() + fragment_row(w),
                  column = warp_column<Tile>() + 8 * c + fragment_column(w);
        if (row >= block.rows.count || column >= a.shape.head_dim_v) continue;
        mem.store(parts.O, origin + row * parts.o.row + column, inverse[w / 2] * sums.O[c][w]);
      }
    }
  }
  mem.flush();
}

/// launch(name, line, kernel, arguments...) for the parts, then the merge.
///
/// Requires: head dimensions of at most WidestTensorTile::kMostColumns.
template <class Mem, class T, class Launch>
void split_kv_tensor_core_launches(const ForwardArguments<Mem, T>& a, const SplitParts<Mem>& parts,
                                   Launch&& launch) {
  with_tensor_tile(widest_head(a.shape), [&](auto tile) {
    using Tile = decltype(tile);
    const BlockLine line = Flash2TensorCore::line(tile, a.shape);
    launch(kernel_name("split_kv_tensor_core_parts", Tile::name(), name_of_type<T>()),
           SplitKv::part_line(line), split_kv_tensor_core_parts<Tile, T, Mem>, a, parts);
    split_kv_merge_launch<Tile::kResident>(a, parts, line, launch);
  });
}

}  // namespace ATTEST_SIMT_WORLD
}  // namespace attest::gpu
