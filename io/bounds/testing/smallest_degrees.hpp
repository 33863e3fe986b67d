#pragma once

#include <algorithm>

#include "io/bounds/patterns/pattern_degrees.hpp"

namespace attest::io::testing {

/// A wrong component, in which the smallest degree stands for all: bounds from it are too high, and
/// the tests of bounds must see it.
inline PatternComponent with_smallest_degrees(PatternComponent component) {
  for (auto* degrees : {&component.row_degrees, &component.key_degrees}) {
    const std::int64_t smallest = degrees->back();
    std::fill(degrees->begin(), degrees->end(), smallest);
  }
  return component;
}

}  // namespace attest::io::testing
