#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/problem.hpp"
#include "core/rng.hpp"

namespace attest::certify {

/// Level of the scores in the table of pairs: a scale of its own, features. Scales are small enough
/// that many keys keep a weight.
struct ScoreLevel {
  std::string name;
  std::optional<double> scale;
  std::uint32_t features = 0;
  bool holes = false;          // of a bias
  const char* kind = nullptr;  // the value of the one feature; else each has its example

  /// Gives a problem the scale and the features; axes of a bias are drawn.
  void give(Problem& problem, Rng& rng) const;

  /// Tells whether a problem meets the level.
  bool lies_in(const Problem& problem) const;
};

/// Returns the levels; later ones demand more. Each feature alone, with a negative scale where the
/// sign does not pass through it, and two by two, but softcap and ALiBi with what is in the mask;
/// storage of K and V alone, each of its kinds.
/// [certify/plan/pairs/pairwise_test "what is claimed can be met", "levels of the scores"]
const std::vector<ScoreLevel>& score_levels();

}  // namespace attest::certify
