#pragma once

#include <cstddef>
#include <cstdlib>

namespace attest::testing {

/// Tells whether ci/nightly runs the test: then it takes more elements, cases and lengths.
inline bool is_nightly() { return std::getenv("ATTEST_NIGHTLY") != nullptr; }

/// Tells whether one of many trials of a kind is made: every `apart`-th, in ci/nightly all.
inline bool is_turn(std::size_t trial, std::size_t apart) {
  return is_nightly() || trial % apart == 0;
}

}  // namespace attest::testing
