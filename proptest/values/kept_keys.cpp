#include "proptest/values/kept_keys.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

#include "core/rng.hpp"
#include "proptest/judge/claims.hpp"

namespace attest::proptest {
namespace {

constexpr std::uint64_t kStream = 0x6b657074u, kSeeds = 1000;

bool keeps(const Problem& problem) { return rows_without_a_key(problem).empty(); }

// Holes of the same axes, and of keys alone, that each row of a head has in common.
Bias tried(Bias bias, int tries, Rng& rng) {
  constexpr int kOfOwnAxes = 4;
  if (tries >= kOfOwnAxes) bias.axes = {false, false, false, true};
  bias.seed = static_cast<std::uint64_t>(rng.between(1, kSeeds));
  return bias;
}

// A row that lacks one key does not lack all: masks that depend on keys.
HeadMask tried(HeadMask mask, int tries, Rng& rng) {
  constexpr std::array<std::int64_t, 8> kLeastPercent{0, 0, 60, 80, 80, 90, 95, 95};
  mask.axes[3] = true;
  mask.percent = std::max(mask.percent, kLeastPercent[static_cast<std::size_t>(tries)]);
  mask.seed = static_cast<std::uint64_t>(rng.between(1, kSeeds));
  return mask;
}

constexpr int kTries = 8;

}  // namespace

void keep_a_key_in_each_row(Problem& problem) {
  const bool holes = problem.bias.kind == Bias::Kind::holes,
             mask = problem.head_mask.kind == HeadMask::Kind::drawn;
  if ((!holes && !mask) || keeps(problem)) return;
  Rng rng(mix(problem.bias.seed, problem.head_mask.seed), kStream);
  const HeadMask of_heads = problem.head_mask;
  problem.head_mask = HeadMask{};
  const Bias with_holes = problem.bias;
  for (int k = 0; holes && k < kTries && !keeps(problem); ++k) {
    problem.bias = tried(with_holes, k, rng);
  }
  if (holes && !keeps(problem)) problem.bias.kind = Bias::Kind::drawn;
  if (!mask) return;
  for (int k = 0; k < kTries; ++k) {
    problem.head_mask = tried(of_heads, k, rng);
    if (keeps(problem)) return;
  }
  problem.head_mask = HeadMask{};
}

void keep_a_key_in_each_row(const attest_description& description, Problem& problem) {
  if ((description.features & ATTEST_EMPTY_ROWS) == 0) keep_a_key_in_each_row(problem);
}

}  // namespace attest::proptest
