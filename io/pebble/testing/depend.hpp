#pragma once

#include <algorithm>

#include "io/pebble/game.hpp"

namespace attest::io::testing {

/// Tells whether the order of two neighbouring moves matters by itself: they concern the same word,
/// or one needs the word that the other places or releases. Swapped, they are refused.
inline bool depend(const Dag& dag, const Move& a, const Move& b) {
  const auto needs = [&](const Move& user, const Move& other) {
    const auto& operands = dag.operands(user.vertex);
    return user.rule == Rule::compute && other.rule != Rule::store &&
           std::find(operands.begin(), operands.end(), other.vertex) != operands.end();
  };
  return a.vertex == b.vertex || needs(a, b) || needs(b, a);
}

}  // namespace attest::io::testing
