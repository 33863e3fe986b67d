#include "schedules/engine/search.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>

#include "schedules/engine/head.hpp"

namespace attest::schedules {
namespace {

constexpr std::int64_t kExact = 32;  // numbers of tiles up to which each is tried

// Tile extents worth trying: the smallest for each number of tiles, thinner as tiles get small.
std::vector<std::int64_t> candidates(std::int64_t extent) {
  std::vector<std::int64_t> values;
  for (std::int64_t count = 1; count <= extent;) {
    values.push_back(io::tiles(extent, count));
    count += std::max<std::int64_t>(1, count / kExact);
  }
  for (std::int64_t value = std::min(kExact, extent); value >= 1; --value) values.push_back(value);
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

// Largest value of a tile that fits, the others as they are; 0 when none does.
std::int64_t largest_fit(std::int64_t& tile, std::int64_t extent, io::FastMemory capacity,
                         const std::function<io::Traffic()>& cost) {
  std::int64_t low = 0, high = extent;
  while (low < high) {
    tile = low + (high - low + 1) / 2;
    if (fits(cost().peak, capacity)) {
      low = tile;
    } else {
      high = tile - 1;
    }
  }
  return low;
}

}  // namespace

std::int64_t extent_of(const attest_problem& problem, Extent extent) {
  // A tile has at least one row, even of nothing.
  const std::int64_t q = std::max<std::int64_t>(problem.seqlen_q, 1),
                     k = std::max<std::int64_t>(problem.seqlen_k, 1), dk = problem.head_dim_qk,
                     dv = problem.head_dim_v;
  switch (extent) {
    case Extent::queries:
      return q;
    case Extent::keys:
      return k;
    case Extent::head_dim_qk:
      return dk;
    case Extent::head_dim_v:
      return dv;
    case Extent::pairs:
      return q > std::numeric_limits<std::int64_t>::max() / k
                 ? std::numeric_limits<std::int64_t>::max()
                 : q * k;
    case Extent::any:
      return std::max({q, k, dk, dv});
  }
  return q;
}

io::Words moved(const io::Traffic& traffic, io::FastMemory capacity) {
  const bool bytes = capacity.words == io::FastMemory::kUnlimited;
  return bytes ? traffic.total_bytes() : traffic.total_words();
}

bool fits(io::Amount peak, io::FastMemory capacity) {
  return peak.words <= capacity.words && peak.bytes <= capacity.bytes;
}

void search_tiles(const std::vector<OpenTile>& tiles, io::FastMemory capacity,
                  const std::function<io::Traffic()>& cost) {
  if (tiles.empty()) return;
  const auto words_moved = [&] { return moved(cost(), capacity); };
  io::Words best = words_moved();
  // One value of the first tile, and of the second the largest that fits: words fall as tiles grow.
  const auto try_pair = [&](const OpenTile& first, const OpenTile& second) {
    const std::int64_t before = *first.value, other_before = *second.value;
    std::int64_t best_first = before, best_second = other_before;
    for (const std::int64_t value : candidates(first.extent)) {
      *first.value = value;
      const std::int64_t other = first.value == second.value
                                     ? (fits(cost().peak, capacity) ? value : 0)
                                     : largest_fit(*second.value, second.extent, capacity, cost);
      if (other == 0) break;
      *second.value = other;
      const io::Words words = words_moved();
      // As small as its number of tiles allows, unless it divides another extent too and that
      // costs: what is left over serves other tiles.
      *second.value = io::tiles(second.extent, io::tiles(second.extent, other));
      if (words_moved() > words || !fits(cost().peak, capacity)) *second.value = other;
      if (words < best) {
        best = words;
        best_first = value;
        best_second = *second.value;
      }
      if (first.value != second.value) *second.value = 1;
    }
    *first.value = best_first;
    *second.value = best_second;
    return best_first != before || best_second != other_before;
  };
  for (bool improved = true; improved;) {
    improved = false;
    for (const OpenTile& first : tiles) {
      for (const OpenTile& second : tiles) {
        if (tiles.size() > 1 && first.value == second.value) continue;
        improved = try_pair(first, second) || improved;
      }
    }
  }
  // Fast memory left over serves larger tiles: no fewer words, but longer operations.
  for (const OpenTile& tile : tiles) {
    const std::int64_t before = *tile.value;
    const std::int64_t largest = largest_fit(*tile.value, tile.extent, capacity, cost);
    *tile.value = std::max<std::int64_t>(largest, 1);
    if (largest == 0 || words_moved() > best) *tile.value = before;
  }
}

namespace {

constexpr std::int64_t kEachBlock = 64;

// Blocks that are tried: all up to 64, beyond some 1/32 apart.
std::vector<std::int64_t> blocks_tried(std::int64_t extent) {
  constexpr std::int64_t kSteps = 32;
  std::vector<std::int64_t> values;
  for (std::int64_t value = 1; value < extent; value += value < kEachBlock ? 1 : value / kSteps) {
    values.push_back(value);
  }
  values.push_back(extent);
  return values;
}

// Holds as much as fits, up to 64 to one; whether anything does.
bool hold_most(const OpenTile& held, io::FastMemory capacity,
               const std::function<io::Traffic()>& cost) {
  constexpr std::int64_t kEach = 64, kWidth = 4;  // bytes of what is held
  constexpr std::int64_t kTries = 64;
  const std::int64_t most = std::min({held.extent, capacity.words, capacity.bytes});
  *held.value = most;
  for (std::int64_t tries = 0; *held.value > 0 && (most <= kEach || tries < kTries); ++tries) {
    const io::Amount peak = cost().peak;
    if (fits(peak, capacity)) return true;
    const std::int64_t excess = std::max(peak.words.value() - capacity.words,
                                         io::tiles(peak.bytes.value() - capacity.bytes, kWidth));
    *held.value -= most <= kEach ? 1 : excess;
  }
  return false;
}

}  // namespace

void fit_held(const OpenTile& block, const OpenTile& held, io::FastMemory capacity,
              const std::function<io::Traffic()>& quick_cost,
              const std::function<io::Traffic()>& cost) {
  const bool block_open = *block.value == 0, held_open = *held.value == 0;
  std::optional<io::Words> best;
  TilePair best_pair{block_open ? 1 : *block.value, held_open ? 1 : *held.value};
  for (const std::int64_t value :
       block_open ? blocks_tried(block.extent) : std::vector<std::int64_t>{*block.value}) {
    *block.value = value;
    const bool fitting =
        held_open ? hold_most(held, capacity, quick_cost) : fits(quick_cost().peak, capacity);
    // Larger ones leave less beside them.
    if (!fitting && (value == 1 || (best && value > kEachBlock))) break;
    if (!fitting) continue;
    const io::Words words = moved(quick_cost(), capacity);
    if (best && value > kEachBlock && words.value() / 2 >= best->value()) break;
    if (best && words >= *best) continue;
    best = words;
    best_pair = {value, *held.value};
  }
  std::tie(*block.value, *held.value) = best_pair;
  if (held_open && !hold_most(held, capacity, cost)) *held.value = 1;
}

attest_problem shortened(const attest_problem& problem) {
  constexpr std::int64_t kLongest = 4096;
  attest_problem shorter = problem;
  const attest_mask& mask = problem.mask;
  // Pairs of longer masks are not looked at.
  const bool listed = io::Words(problem.seqlen_q) * problem.seqlen_k <= kMostListedPairs;
  if (mask.boolean != nullptr && listed) return shorter;
  shorter.mask.boolean = nullptr;
  if (mask.cu_seqlens_q != nullptr || mask.key_lengths != nullptr) return shorter;
  const std::int64_t cut = std::min(problem.seqlen_q, problem.seqlen_k) - kLongest;
  if (cut <= 0) return shorter;
  shorter.seqlen_q -= cut;  // both, so that windows lie as they did
  shorter.seqlen_k -= cut;
  return shorter;
}

std::vector<TilePair> trade_tiles(const OpenTile& first, const OpenTile& second,
                                  io::FastMemory capacity, std::int64_t steps,
                                  const std::function<io::Traffic()>& bound,
                                  const std::function<io::Traffic()>& cost) {
  const auto words_moved = [&] { return moved(cost(), capacity).value(); };
  std::vector<std::pair<std::int64_t, TilePair>> tried{
      {words_moved(), {*first.value, *second.value}}};
  *second.value = 1;
  const std::int64_t largest = largest_fit(*first.value, first.extent, capacity, bound);
  const auto try_first = [&](std::int64_t value) {
    *first.value = value;
    *second.value = largest_fit(*second.value, second.extent, capacity, bound);
    tried.push_back({words_moved(), {*first.value, *second.value}});
  };
  std::int64_t before = 0;
  for (std::int64_t step = 0; step <= steps / 2; ++step) {
    const std::int64_t value = largest - largest * step / steps;
    if (value != std::exchange(before, value)) try_first(value);
  }
  // Next to the best of these: tiles that divide blocks of a mask may lie between two.
  const std::int64_t best = std::min_element(tried.begin() + 1, tried.end())->second.first;
  const auto known = [&](std::int64_t value) {
    return std::any_of(tried.begin() + 1, tried.end(),
                       [&](const auto& entry) { return entry.second.first == value; });
  };
  for (const std::int64_t value : {best - 1, best + 1}) {
    if (value >= 1 && value <= largest && !known(value)) try_first(value);
  }
  std::stable_sort(tried.begin(), tried.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::tie(*first.value, *second.value) = tried.front().second;
  std::vector<TilePair> pairs;
  pairs.reserve(tried.size());
  for (const auto& entry : tried) pairs.push_back(entry.second);
  return pairs;
}

}  // namespace attest::schedules
