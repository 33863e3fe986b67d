#pragma once

#include <cstdint>
#include <functional>

#include "io/machine/meter.hpp"

namespace attest::schedules {

/// A tile extent, 0 where it is left open, the blocks of the pattern and what they divide.
struct OpenBlock {
  std::int64_t* tile;
  std::int64_t block, extent;
};

/// Sets the extents of listed tiles, and how many stay at once beside their block, so that cost()
/// has few words (bytes, with a capacity in bytes) and fits: blocks that stay are the pattern's,
/// divided or several, or a third apart, then next to the best; tiles that pass by are a block of
/// the pattern, or as much as fits eight times, halved again and again; as many tiles are held as
/// fit, no more than the longest list has. 1 where nothing fits. Values that are not 0 stay.
/// Cost: some 20 to 300 costs.  [schedules/walks/fit_tiles_test]
void fit_held_tiles(const OpenBlock& stays, const OpenBlock& passes, std::int64_t* held,
                    io::FastMemory capacity, const std::function<io::Traffic()>& cost,
                    const std::function<std::int64_t()>& longest_list);

}  // namespace attest::schedules
