#pragma once

#include <cstdint>
#include <span>

#include "core/features/score_features.hpp"
#include "core/problem.hpp"
#include "core/rng.hpp"

namespace attest::proptest {

/// How a feature of the scores is drawn and made simpler.
/// [proptest/values/generator_test "every feature of the scores"]
struct ScoreDraw {
  std::uint32_t claim;  // which feature
  const char* field;    // in findings of a plan that keeps it
  void (*draw)(Problem&, Rng&);
  /// Draws from a stream of its own, where it is claimed alone: without it all else is drawn as
  /// before the feature was there.
  bool apart = false;
  /// Gives the value, where there is one, more digits than the narrow types hold.
  void (*add_digits)(Problem&, double factor, std::uint64_t seed);
  /// Gives it another value, or none.
  bool (*change)(Problem&, Rng&);
  /// Makes the value simpler, where there is a simpler one.
  void (*simplify)(Problem&);
};

/// Returns the table, in the order of score_features().
std::span<const ScoreDraw> score_draws();

}  // namespace attest::proptest
