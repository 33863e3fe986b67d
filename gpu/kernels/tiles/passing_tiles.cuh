#pragma once

#include "gpu/kernels/tiles/tile.cuh"

/// Which tiles pass by the rows that stay. A walk is made by all lanes of a block, which all call
/// it and are all told the same: next() gives one tile after another, visible() says whether to
/// take it. Then shows(row, lane) says of a resident row and a passing one whether the walk leaves
/// that pair, as far as it knows.
namespace attest::gpu {
inline namespace ATTEST_SIMT_WORLD {

/// Tiles of keys that pass by queries: those of a band, from its beginning rounded down to a tile,
/// without those in which a boolean mask hides every pair.
template <int kPassing, class Mem>
class KeyTilesOfBand {
 public:
  __device__ KeyTilesOfBand(const AttentionShape& shape, const MaskArguments<Mem>& mask,
                            const Sequence& sequence, TileRows queries, KeyBand band)
      : shape_(shape),
        mask_(mask),
        sequence_(sequence),
        queries_(queries),
        next_(band.first_tile(kPassing)),
        end_(band.end) {}

  __device__ bool next(Mem&, TileRows& keys) {
    if (next_ >= end_) return false;
    keys = rows_from(next_, sequence_.k_length, kPassing);
    next_ += kPassing;
    return true;
  }
  __device__ bool visible(Mem& mem, TileRows keys) const {
    return !mask_.boolean || tile_visible(mem, shape_, mask_, sequence_, queries_, keys);
  }
  __device__ bool shows(int, int) const { return true; }

 private:
  const AttentionShape& shape_;
  const MaskArguments<Mem>& mask_;
  const Sequence& sequence_;
  TileRows queries_;
  std::int64_t next_, end_;
};

/// The same of queries that pass by keys.
template <int kPassing, class Mem>
class QueryTilesOfBand {
 public:
  __device__ QueryTilesOfBand(const AttentionShape& shape, const MaskArguments<Mem>& mask,
                              const Sequence& sequence, TileRows keys)
      : shape_(shape), mask_(mask), sequence_(sequence), keys_(keys) {}

  __device__ bool next(Mem&, TileRows& queries) {
    if (next_ >= sequence_.q_length) return false;
    queries = rows_from(next_, sequence_.q_length, kPassing);
    next_ += kPassing;
    return true;
  }
  __device__ bool visible(Mem& mem, TileRows queries) const {
    return band_of_rows(sequence_, mask_, queries).meets(keys_) &&
           (!mask_.boolean || tile_visible(mem, shape_, mask_, sequence_, queries, keys_));
  }
  __device__ bool shows(int, int) const { return true; }

 private:
  const AttentionShape& shape_;
  const MaskArguments<Mem>& mask_;
  const Sequence& sequence_;
  TileRows keys_;
  std::int64_t next_ = 0;
};

/// The walks of kernels that have no lists.
struct EveryTile {
  template <int kResident, int kPassing, class Mem>
  __device__ static KeyTilesOfBand<kPassing, Mem> keys(Mem&, const AttentionShape& shape,
                                                       const MaskArguments<Mem>& mask,
                                                       const Sequence& sequence, TileRows queries) {
    return {shape, mask, sequence, queries, band_of_rows(sequence, mask, queries)};
  }
  template <int kResident, int kPassing, class Mem>
  __device__ static QueryTilesOfBand<kPassing, Mem> queries(Mem&, const AttentionShape& shape,
                                                            const MaskArguments<Mem>& mask,
                                                            const Sequence& sequence,
                                                            TileRows keys) {
    return {shape, mask, sequence, keys};
  }
};

}  // namespace ATTEST_SIMT_WORLD
}  // namespace attest::gpu
