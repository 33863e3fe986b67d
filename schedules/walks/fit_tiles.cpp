#include "schedules/walks/fit_tiles.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "schedules/engine/search.hpp"
#include "schedules/lists/sparse_family.hpp"

namespace attest::schedules {
namespace {

constexpr std::int64_t kWidth = 4;  // bytes of a pair

// Pairs that capacity has room for.
std::int64_t room(io::FastMemory capacity) {
  return std::min(capacity.words, capacity.bytes / kWidth);
}

void sort_once(std::vector<std::int64_t>& values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

// Divisors and multiples of a block, and values a third apart. Beyond twice the root of the pairs
// that fit, pieces are short.
std::vector<std::int64_t> blocks_tried(const OpenBlock& stays, io::FastMemory capacity) {
  if (*stays.tile > 0) return {*stays.tile};
  const auto root = static_cast<std::int64_t>(2 * std::sqrt(static_cast<double>(room(capacity))));
  const std::int64_t most = std::min(root, std::max<std::int64_t>(stays.extent, 1));
  const auto third = [](std::int64_t value) { return std::max<std::int64_t>(value / 3, 1); };
  std::vector<std::int64_t> values;
  for (std::int64_t value = 1; value <= most; value += third(value)) values.push_back(value);
  for (std::int64_t value = 1; value <= std::min(stays.block, most); ++value) {
    if (stays.block % value == 0) values.push_back(value);
  }
  for (std::int64_t count = 2; count * stays.block <= most; count += third(count)) {
    values.push_back(count * stays.block);
  }
  sort_once(values);
  return values;
}

// A block of the pattern; or as much as fits several times, halved until it is one key or query,
// and a part of a block of that size.
std::vector<std::int64_t> tiles_tried(const OpenBlock& passes, std::int64_t stays,
                                      io::FastMemory capacity) {
  constexpr std::int64_t kSeveral = 8;
  const std::int64_t several = std::clamp<std::int64_t>(room(capacity) / (kSeveral * stays), 1,
                                                        std::max<std::int64_t>(passes.extent, 1));
  std::vector<std::int64_t> values{passes.block, aligned_tile(several, passes.block)};
  for (std::int64_t value = several; value >= 1; value /= 2) values.push_back(value);
  sort_once(values);
  return values;
}

// Holds as many tiles as fit, up to those of the longest list, and returns what that moves; nothing
// where none do. A peak grows with them, or nearly, and the next guess goes by the last.
std::optional<io::Traffic> hold_most(std::int64_t* held, std::int64_t longest,
                                     io::FastMemory capacity,
                                     const std::function<io::Traffic()>& cost) {
  std::optional<io::Traffic> traffic;
  std::int64_t fitting = 0, beyond = longest + 1;
  *held = longest;
  while (beyond - fitting > 1) {
    const io::Traffic tried = cost();
    if (fits(tried.peak, capacity)) {
      traffic = tried;
      fitting = *held;
    } else {
      beyond = *held;
    }
    const io::Amount peak = tried.peak;
    const double share =
        std::min(static_cast<double>(capacity.words) / static_cast<double>(peak.words.value()),
                 static_cast<double>(capacity.bytes) / static_cast<double>(peak.bytes.value()));
    const auto guess = static_cast<double>(*held) * share;
    *held = std::clamp(
        guess < static_cast<double>(beyond) ? static_cast<std::int64_t>(guess) : beyond - 1,
        fitting + 1, std::max(beyond - 1, fitting + 1));
  }
  *held = fitting;
  return traffic;
}

}  // namespace

void fit_held_tiles(const OpenBlock& stays, const OpenBlock& passes, std::int64_t* held,
                    io::FastMemory capacity, const std::function<io::Traffic()>& cost,
                    const std::function<std::int64_t()>& longest_list) {
  constexpr std::int64_t kFiner = 8;  // steps of a block, next to the best
  const bool held_open = *held == 0, block_open = *stays.tile == 0;
  std::array best{std::max<std::int64_t>(*stays.tile, 1), std::max<std::int64_t>(*passes.tile, 1),
                  std::max<std::int64_t>(*held, 1)};
  constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();
  std::int64_t fewest = kNone;
  const auto consider = [&] {
    std::optional<io::Traffic> traffic;
    if (held_open) {
      traffic = hold_most(held, std::max<std::int64_t>(longest_list(), 1), capacity, cost);
    } else if (const io::Traffic of_given = cost(); fits(of_given.peak, capacity)) {
      traffic = of_given;
    }
    if (!traffic) return;
    const std::int64_t words = moved(*traffic, capacity).value();
    if (words >= fewest) return;
    fewest = words;
    best = {*stays.tile, *passes.tile, *held};
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
  if (block_open && fewest != kNone) {
    const std::int64_t block = best[0], tile = best[1];
    const std::int64_t step = std::max<std::int64_t>(block / kFiner, 1);
    for (std::int64_t finer = block - 2 * step; finer <= block + 2 * step; finer += step) {
      if (finer < 1 || finer > stays.extent || finer == block) continue;
      *stays.tile = finer;
      *passes.tile = tile;
      consider();
    }
  }
  *stays.tile = best[0];
  *passes.tile = best[1];
  *held = best[2];
}

}  // namespace attest::schedules
