#pragma once

#include <limits>

#include "gpu/kernels/tiles/tile.cuh"

/// The tiles that a block mask lists. Tiles lie as they do without one, from query 0 and key 0 of a
/// sequence; blocks of any size lie across them. A tile passes by when a listed block has a pair in
/// it that window and lengths leave: those, in the same order, that a walk over the boolean form of
/// the mask would find.
///
/// Words:  of each block that the resident rows meet two offsets, of two words each, and every
///         index of its list, of a word each, once.  [gpu/kernels/block_flash2/block_flash2_test
///         "words"]
namespace attest::gpu {
inline namespace ATTEST_SIMT_WORLD {

/// Side whose tiles pass by.
enum class Passing : std::uint8_t { keys, queries };

/// Tile that passes by, as the lanes of a block know it: its number, and of each resident row the
/// passing rows that its block lists, as bits.
struct ListedTile {
  static constexpr int kNone = std::numeric_limits<int>::max();
  int number;
  unsigned listed[32];
};

/// The lanes of the first warp have a list each, of one block that the resident rows meet. Without
/// a block mask the first has all rows of the other side in one block, and reads nothing.
///
/// Requires: a barrier between the last shows() and the following next().
template <Passing kSide, int kResident, int kPassing, class Mem>
class TilesOfLists {
  static_assert(kResident <= 32 && kPassing <= 32, "a lane for each row, a bit for each other");

 public:
  __device__ TilesOfLists(Mem& mem, const MaskArguments<Mem>& mask, const Sequence& sequence,
                          TileRows resident)
      : mask_(mask), sequence_(sequence), tile_(place()) {
    __syncthreads();  // what a walk before this one left is no longer read
    if (warp_in_block() != 0) return;
    const int lane = lane_in_warp();
    const std::int64_t block = kKeys ? mask.block_q : mask.block_k;
    const std::int64_t first = resident.first / block, end = resident.first + resident.count;
    if (lane < resident.count) {
      list_of_row_ = static_cast<int>((resident.first + lane) / block - first);
    }
    if (lane <= (end - 1) / block - first) open_list(mem, resident, first + lane, block);
    next_tile_ = next_of_list(mem, 0);
  }

  __device__ bool next(Mem& mem, TileRows& passing) {
    if (warp_in_block() == 0) announce(mem);
    __syncthreads();
    const int number = tile_.number;
    if (number == ListedTile::kNone) return false;
    passing = rows_from(std::int64_t{number} * kPassing, length(), kPassing);
    return true;
  }

  /// Always, but not known to the compiler: where it is, nvcc leaves O of wide heads in local
  /// memory.
  __device__ bool visible(Mem&, TileRows passing) const { return passing.count > 0; }
  __device__ bool shows(int row, int passing) const {
    return (tile_.listed[row] >> passing & 1U) != 0;
  }

 private:
  static constexpr bool kKeys = kSide == Passing::keys;

  __device__ static ListedTile& place() {
    ATTEST_SHARED(ListedTile, listed_tile);
    return listed_tile;
  }
  __device__ const ListArguments<Mem>& lists() const {
    return kKeys ? mask_.by_query : mask_.by_key;
  }
  __device__ std::int64_t length() const { return kKeys ? sequence_.k_length : sequence_.q_length; }

  /// The list of block `number`, and the resident rows that are in the block.
  __device__ void open_list(Mem& mem, TileRows resident, std::int64_t number, std::int64_t block) {
    const std::int64_t first = max(number * block, resident.first),
                       end = min(number * block + block, resident.first + resident.count);
    rows_ = {first, static_cast<int>(end - first)};
    if (!lists().offsets) {
      list_end_ = 1;
      return;
    }
    place_ = mem.load(lists().offsets, number);
    list_end_ = mem.load(lists().offsets, number + 1);
  }

  /// The passing rows of the index at `place_`, read when it is first asked for.
  __device__ bool open_index(Mem& mem) {
    if (place_ == list_end_) return false;
    if (is_open_) return true;
    const std::int64_t block = kKeys ? mask_.block_k : mask_.block_q;
    begin_ = lists().indices ? mem.load(lists().indices, place_) * block : 0;
    end_ = length() - begin_ < block ? length() : begin_ + block;
    is_open_ = true;
    return true;
  }
  __device__ void close_index() {
    ++place_;
    is_open_ = false;
  }

  /// Rows of the open index in a tile.
  __device__ TileRows part_in(std::int64_t tile) const {
    const std::int64_t first = max(begin_, tile * kPassing),
                       end = min(end_, tile * kPassing + kPassing);
    return {first, first < end ? static_cast<int>(end - first) : 0};
  }

  /// Tells whether window and lengths leave a pair of the part with the list's resident rows.
  __device__ bool meets(TileRows part) const {
    if (part.count == 0) return false;
    return kKeys ? band_of_rows(sequence_, mask_, rows_).meets(part)
                 : band_of_rows(sequence_, mask_, part).meets(rows_);
  }

  /// The first tile from `tile` on of which this lane's list has a pair.
  __device__ int next_of_list(Mem& mem, std::int64_t tile) {
    for (; open_index(mem); close_index()) {
      for (std::int64_t t = max(tile, begin_ / kPassing); t * kPassing < end_; ++t) {
        if (meets(part_in(t))) return static_cast<int>(t);
      }
    }
    return ListedTile::kNone;
  }

  /// The rows of a tile that this lane's list has. An index that goes on behind the tile stays
  /// open.
  __device__ unsigned take_tile(Mem& mem, std::int64_t tile) {
    const std::int64_t first = tile * kPassing, end = first + kPassing;
    unsigned bits = 0;
    for (; open_index(mem) && begin_ < end; close_index()) {
      const TileRows part = part_in(tile);
      if (part.count > 0) bits |= ~0U >> (32 - part.count) << (part.first - first);
      if (end_ > end) break;
    }
    return bits;
  }

  /// The first of all lanes' tiles, by the first warp.
  __device__ void announce(Mem& mem) {
    int tile = next_tile_;
    for (int bits = 16; bits > 0; bits /= 2) tile = min(tile, __shfl_xor_sync(~0U, tile, bits));
    unsigned listed = 0;
    if (tile != ListedTile::kNone && next_tile_ == tile) {
      listed = take_tile(mem, tile);
      next_tile_ = next_of_list(mem, std::int64_t{tile} + 1);
    }
    const int lane = lane_in_warp();
    tile_.listed[lane] = __shfl_sync(~0U, listed, list_of_row_);
    if (lane == 0) tile_.number = tile;
  }

  const MaskArguments<Mem>& mask_;
  const Sequence& sequence_;
  ListedTile& tile_;
  int list_of_row_ = 0;  // of the resident row with the lane's number: the lane that has its list
  TileRows rows_;        // resident, of this lane's list
  std::int64_t place_ = 0, list_end_ = 0;
  bool is_open_ = false;
  std::int64_t begin_ = 0, end_ = 0;  // of the open index
  int next_tile_ = ListedTile::kNone;
};

/// The walks of kernels that have lists.
struct ListedTiles {
  template <int kResident, int kPassing, class Mem>
  __device__ static TilesOfLists<Passing::keys, kResident, kPassing, Mem> keys(
      Mem& mem, const AttentionShape&, const MaskArguments<Mem>& mask, const Sequence& sequence,
      TileRows queries) {
    return {mem, mask, sequence, queries};
  }
  template <int kResident, int kPassing, class Mem>
  __device__ static TilesOfLists<Passing::queries, kResident, kPassing, Mem> queries(
      Mem& mem, const AttentionShape&, const MaskArguments<Mem>& mask, const Sequence& sequence,
      TileRows keys) {
    return {mem, mask, sequence, keys};
  }
};

}  // namespace ATTEST_SIMT_WORLD
}  // namespace attest::gpu
