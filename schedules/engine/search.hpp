#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "core/abi/attest_kernel.h"
#include "io/machine/meter.hpp"

/// Chooses tiles by trying them on the closed form.
namespace attest::schedules {

/// Extent of a problem that a tile divides.
enum class Extent : std::uint8_t { queries, keys, head_dim_qk, head_dim_v, pairs, any };
std::int64_t extent_of(const attest_problem& problem, Extent extent);

struct OpenTile {
  std::int64_t* value;
  std::int64_t extent;
  bool open = true;
};

bool fits(io::Amount peak, io::FastMemory capacity);

/// Returns what a schedule moves, in words, or in bytes with a capacity in bytes.
io::Words moved(const io::Traffic& traffic, io::FastMemory capacity);

/// Sets the tiles so that cost() has few words (bytes, with a capacity in bytes) and fits: searches
/// all pairs of tiles in turn until none improves. Requires: the present values fit, and a smaller
/// tile never has a larger peak. [schedules/forward_test "tiles left open"]
void search_tiles(const std::vector<OpenTile>& tiles, io::FastMemory capacity,
                  const std::function<io::Traffic()>& cost);

/// Sets a block, of which all values up to 64 are tried and beyond some 1/32 apart, and what is
/// held beside it, as much as fits, so that quick_cost() has few words; 1 where nothing fits.
/// cost() decides how much is held with the chosen block. Values that are not 0 stay. No larger
/// block is tried after one beyond 64 that does not fit or has twice the words of the best.
/// Requires: held beyond what there is costs no more.
/// [schedules/bands/held_scores_test "tiles left open"]
void fit_held(const OpenTile& block, const OpenTile& held, io::FastMemory capacity,
              const std::function<io::Traffic()>& quick_cost,
              const std::function<io::Traffic()>& cost);

/// A problem on which the words of tiles compare as on this one: no more than 4096 queries and
/// keys, and a window between them as it was. With lengths of its own it stays.
attest_problem shortened(const attest_problem& problem);

/// Values of two tiles.
using TilePair = std::pair<std::int64_t, std::int64_t>;

/// Sets two tiles that share fast memory to the pair with the fewest words: the first from the
/// largest that fits down to half of it, in steps of 1/steps of it, then next to the best, the
/// second the largest that fits beside it; or both as they are. `bound` is what decides whether
/// tiles fit, cheap to ask and no less than `cost`. Requires: the present values fit. Returns: the
/// pairs that were tried, of the fewest words first.
/// [schedules/best_schedule_test "tiles of rolling buffers"]
std::vector<TilePair> trade_tiles(const OpenTile& first, const OpenTile& second,
                                  io::FastMemory capacity, std::int64_t steps,
                                  const std::function<io::Traffic()>& bound,
                                  const std::function<io::Traffic()>& cost);

}  // namespace attest::schedules
