#pragma once

#include <cstdint>
#include <vector>

#include "core/abi/attest_kernel.h"
#include "sparse/kernels/block_tiles.hpp"
#include "sparse/kernels/lists/owned_lists.hpp"

namespace attest::sparse {

/// A tile of queries and keys is computed whole where one in so many of its pairs is visible: a
/// pair that is gathered takes seven to ten times as long as one of a tile (docs/how-to/masks.md).
inline constexpr std::int64_t kPairsPerVisible = 6;

/// The first `count` bits of a word.
constexpr std::uint64_t first_bits(std::int64_t count) {
  return count == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
}
static_assert(kTile == 64, "a row of a tile is one word");

/// The pairs of a CSR mask: tiles that are dense enough to be computed whole, single pairs beside
/// them.
struct PairSplit {
  static constexpr std::int64_t kWhole = -1;

  std::int64_t tile = kTile;           // queries and keys of a tile
  OwnedLists tiles;                    // key tiles of a query tile
  std::vector<std::int64_t> words_at;  // of each of them in `words`; kWhole: all pairs are visible
  std::vector<std::uint64_t> words;    // `tile` of a tile: bit j of word i, query i sees key j
  OwnedLists singles;                  // keys of a query

  /// The queries after those of this one.
  void append(const PairSplit& next);
};

/// The pairs of a problem's CSR mask, those within the band where all batch entries have the same,
/// on the problem's threads. Requires: mask.csr, tile is a power of two, at most kTile. Cost: time
/// linear in the pairs, less where tiles are full; memory linear in the pairs, and for each thread
/// in the keys.
/// [sparse/kernels/lists/split_mask_test "every pair in a tile or single"]
PairSplit split_pairs(const attest_problem& problem, std::int64_t tile);

/// kTile, 32 or 16, whichever is likely to take the least time by a sample of up to 8 query tiles.
/// [sparse/kernels/lists/split_mask_test "tiles as large as the blocks"]
std::int64_t best_tile(const attest_problem& problem);

}  // namespace attest::sparse
