#include "sparse/schedules/fit_tiles.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <vector>

#include "cpu/schedules/search.hpp"
#include "sparse/schedules/sparse_family.hpp"

namespace attest::sparse {
namespace {

constexpr std::int64_t kWidth = 4;  // bytes of a pair

// Pairs that capacity has room for.
std::int64_t room(io::FastMemory capacity) {
  return std::min(capacity.words, capacity.bytes / kWidth);
}

// Divisors and multiples of a block, thinner as they get large. Beyond twice the root of the pairs
// that fit, pieces are short.
std::vector<std::int64_t> blocks_tried(const OpenBlock& stays, io::FastMemory capacity) {
  if (*stays.tile > 0) return {*stays.tile};
  const auto most = static_cast<std::int64_t>(2 * std::sqrt(static_cast<double>(room(capacity))));
  std::vector<std::int64_t> values;
  for (std::int64_t value = 1; value <= std::min(stays.block, most); ++value) {
    if (stays.block % value == 0) values.push_back(value);
  }
  for (std::int64_t count = 2; count * stays.block <= std::min(most, stays.extent);) {
    values.push_back(count * stays.block);
    count += std::max<std::int64_t>(count / 3, 1);
  }
  return values;
}

// A block of the pattern, or a part of one of which several fit.
std::vector<std::int64_t> tiles_tried(const OpenBlock& passes, std::int64_t stays,
                                      io::FastMemory capacity) {
  constexpr std::int64_t kSeveral = 8;
  const std::int64_t several =
      std::clamp<std::int64_t>(room(capacity) / (kSeveral * stays), 1, passes.block);
  const std::int64_t part = aligned_tile(several, passes.block);
  return part == passes.block ? std::vector{part} : std::vector{passes.block, part};
}

// What an amount has more than fits, in tiles of so many words, rounded up.
std::int64_t tiles_over(io::Amount peak, io::FastMemory capacity, std::int64_t words) {
  const std::int64_t over = std::max(peak.words.value() - capacity.words,
                                     io::tiles(peak.bytes.value() - capacity.bytes, kWidth));
  return io::tiles(over, words);
}

}  // namespace

void fit_held_tiles(const OpenBlock& stays, const OpenBlock& passes, std::int64_t* held,
                    io::FastMemory capacity, const std::function<io::Traffic()>& cost,
                    const std::function<std::int64_t()>& longest_list) {
  constexpr int kTries = 32;
  constexpr std::int64_t kWordBits = 32;
  const bool held_open = *held == 0;
  std::array best{std::max<std::int64_t>(*stays.tile, 1), std::max<std::int64_t>(*passes.tile, 1),
                  std::max<std::int64_t>(*held, 1)};
  std::optional<io::Words> fewest;
  const auto consider = [&] {
    const std::int64_t pairs = *stays.tile * *passes.tile;
    if (held_open) *held = std::max<std::int64_t>(longest_list(), 1);
    for (int tries = 0; *held > 0 && tries < kTries; ++tries) {
      const io::Traffic traffic = cost();
      if (cpu::fits(traffic.peak, capacity)) {
        const io::Words words = cpu::moved(traffic, capacity);
        if (fewest && words >= *fewest) return;
        fewest = words;
        best = {*stays.tile, *passes.tile, *held};
        return;
      }
      if (!held_open) return;
      const std::int64_t fewer =
          *held - tiles_over(traffic.peak, capacity, pairs + 1 + io::tiles(pairs, kWordBits));
      // Most tiles may hold less than a whole one; the first guess goes by what they hold.
      const auto share = static_cast<double>(room(capacity)) /
                         static_cast<double>(io::tiles(traffic.peak.bytes.value(), kWidth));
      const auto guess = static_cast<std::int64_t>(share * static_cast<double>(*held)) + 1;
      *held = tries == 0 ? std::min(fewer, guess) : fewer;
    }
  };
  const auto tiles = [&, given = *passes.tile](std::int64_t block) {
    return given > 0 ? std::vector{given} : tiles_tried(passes, block, capacity);
  };
  for (const std::int64_t block : blocks_tried(stays, capacity)) {
    for (const std::int64_t tile : tiles(block)) {
      *stays.tile = block;
      *passes.tile = tile;
      consider();
    }
  }
  *stays.tile = best[0];
  *passes.tile = best[1];
  *held = best[2];
}

}  // namespace attest::sparse
