#pragma once

#include "gpu/kernels/flash2/flash2.cuh"

/// Flash-decoding forward: flash2 on parts of the keys side by side, then a merge through LSE.
/// Parts are whole key blocks; a part of which a block of queries sees nothing costs nothing. Parts
/// are kept in float32.
///
/// Grid:   split_kv_parts: a block for each 32 queries of a (batch, head), for every part, as
///         flash2; split_kv_merge: a block for each 32 queries, or as many as a part's blocks have.
/// Words:  those of the schedule split_kv:splits=4,bq=32,bk=32.  [gpu/kernels/schedule_words_test]
/// Source: Dao, Haziza, Massa, Sizov 2023.
namespace attest::gpu {
inline namespace ATTEST_SIMT_WORLD {

struct SplitKv {
  static constexpr int kSplits = 4, kBlockK = 32, kMergeLanes = 256;

  /// Keys of a part: whole blocks, as equal as they can be.
  __host__ __device__ static std::int64_t part_keys(std::int64_t keys) {
    return tiles_of(tiles_of(keys, kBlockK), kSplits) * kBlockK;
  }
  /// Returns the parts' launch, from that of a kernel of all keys in `line`.
  static BlockLine part_line(BlockLine line) {
    line.blocks *= kSplits;
    return line;
  }
  static BlockLine merge_line(const BlockLine& line) { return {line.blocks, kMergeLanes, 0}; }
};
static_assert(SplitKv::kBlockK == Flash2::kBlockK);

/// O and LSE of each part, as O and LSE lie; `o_part` and `lse_part` from one part to the next.
template <class Mem>
struct SplitParts {
  typename Mem::template Out<float> O, LSE;
  Strides o, lse;
  std::int64_t o_part = 0, lse_part = 0;
};

/// The keys of a part that a block of queries may see, as far as window and lengths say.
template <class Mem, class T>
__device__ KeyBand band_of_part(const ForwardArguments<Mem, T>& a, const QueryBlock& block,
                                std::int64_t part) {
  const std::int64_t keys = SplitKv::part_keys(block.sequence.k_length);
  KeyBand band = band_of_rows(block.sequence, a.mask, block.rows);
  band.begin = max(band.begin, part * keys);
  band.end = min(band.end, part * keys + keys);
  return band;
}

/// Tells whether a block of queries sees a key of the band; the same answer for all lanes.
template <class Mem, class T>
__device__ bool band_visible(Mem& mem, const ForwardArguments<Mem, T>& a, const QueryBlock& block,
                             KeyBand band) {
  if (!a.mask.boolean) return band.begin < band.end;
  for (std::int64_t key = band.first_tile(SplitKv::kBlockK); key < band.end;
       key += SplitKv::kBlockK) {
    const TileRows keys = rows_from(key, block.sequence.k_length, SplitKv::kBlockK);
    if (tile_visible(mem, a.shape, a.mask, block.sequence, block.rows, keys)) return true;
  }
  return false;
}

template <int kColumns, class Mem>
__global__ void __launch_bounds__(Flash2::kLanes)
    split_kv_parts(ForwardArguments<Mem> a, SplitParts<Mem> parts) {
  Mem mem(a.sink);
  ATTEST_DYNAMIC_SHARED(float, shared);
  const std::int64_t part = blockIdx.x % SplitKv::kSplits;
  const QueryBlock block =
      query_block(mem, a.shape, a.mask, blockIdx.x / SplitKv::kSplits, Flash2::kBlockQ);
  if (block.rows.count > 0) {
    const KeyBand band = band_of_part(a, block, part);
    if (band_visible(mem, a, block, band)) {
      RowSums<Flash2::kRows, kColumns> sums;
      attend<Flash2>(
          mem, a, block,
          KeyTilesOfBand<Flash2::kBlockK, Mem>(a.shape, a.mask, block.sequence, block.rows, band),
          shared, sums);
      sums.template store_O<float>(mem, block, a.shape.head_dim_v, parts.O + part * parts.o_part,
                                   parts.o);
      sums.store_LSE(mem, block, parts.LSE + part * parts.lse_part, parts.lse);
    }
  }
  mem.flush();
}

/// O and LSE of all keys, of so many queries by each block, as those of a part.
template <int kQueries, class Mem, class T>
__global__ void __launch_bounds__(SplitKv::kMergeLanes)
    split_kv_merge(ForwardArguments<Mem, T> a, SplitParts<Mem> parts) {
  constexpr int kSplits = SplitKv::kSplits, kRows = kQueries / (SplitKv::kMergeLanes / 32);
  Mem mem(a.sink);
  const QueryBlock block = query_block(mem, a.shape, a.mask, blockIdx.x, kQueries);
  bool seen[kSplits] = {};
  for (int part = 0; part < kSplits && block.rows.count > 0; ++part) {
    seen[part] = band_visible(mem, a, block, band_of_part(a, block, part));
  }
  for (int r = 0; r < kRows; ++r) {
    const int row = warp_in_block() * kRows + r, lane = lane_in_warp();
    if (row >= block.rows.count) continue;  // the whole warp
    float weights[kSplits];
    float maximum = -INFINITY, sum = 0;
    for (int part = 0; part < kSplits; ++part) {
      float value = -INFINITY;
      if (seen[part] && lane == 0) {
        value = mem.load(parts.LSE,
                         part * parts.lse_part + block.origin(parts.lse) + row * parts.lse.row);
      }
      weights[part] = __shfl_sync(~0U, value, 0);
      maximum = fmaxf(maximum, weights[part]);
    }
    const float shift = maximum == -INFINITY ? 0 : maximum;  // exp(-inf) = 0
    for (float& weight : weights) sum += weight = expf(weight - shift);
    const std::int64_t origin = block.origin(a.o) + row * a.o.row,
                       origin_part = block.origin(parts.o) + row * parts.o.row;
    for (int column = lane; column < a.shape.head_dim_v; column += 32) {
      float O = 0;
      for (int part = 0; part < kSplits; ++part) {
        if (!seen[part]) continue;
        O += weights[part] * mem.load(parts.O, part * parts.o_part + origin_part + column);
      }
      mem.store(a.O, origin + column * a.o.column, rounded<T>(sum == 0 ? 0 : O / sum));
    }
    if (lane == 0 && a.LSE) {
      mem.store(a.LSE, block.origin(a.lse) + row * a.lse.row,
                sum == 0 ? -INFINITY : maximum + logf(sum));
    }
  }
  mem.flush();
}

/// launch(name, line, kernel, arguments...) for the merge of parts whose blocks have so many
/// queries and lie in `line`.
template <int kQueries, class Mem, class T, class Launch>
void split_kv_merge_launch(const ForwardArguments<Mem, T>& a, const SplitParts<Mem>& parts,
                           const BlockLine& line, Launch&& launch) {
  launch(kernel_name("split_kv_merge", kQueries, name_of_type<T>()), SplitKv::merge_line(line),
         split_kv_merge<kQueries, Mem, T>, a, parts);
}

/// For the parts, then the merge.
///
/// Requires: head_dim_v at most kMostColumns.
template <class Mem, class Launch>
void split_kv_launches(const ForwardArguments<Mem>& a, const SplitParts<Mem>& parts,
                       Launch&& launch) {
  const BlockLine line = Flash2::line(a.shape);
  with_columns(a.shape.head_dim_v, [&]<int kColumns>() {
    launch(kernel_name("split_kv_parts", kColumns), SplitKv::part_line(line),
           split_kv_parts<kColumns, Mem>, a, parts);
  });
  split_kv_merge_launch<Flash2::kBlockQ>(a, parts, line, launch);
}

}  // namespace ATTEST_SIMT_WORLD
}  // namespace attest::gpu
