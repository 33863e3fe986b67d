#pragma once

#include <cstddef>
#include <cstdint>

#include "core/rng.hpp"

/// Helpers with which generators draw.
namespace attest::proptest {

template <class Choices>
auto pick(Rng& rng, const Choices& choices) {
  const auto last = static_cast<std::int64_t>(choices.size()) - 1;
  return choices[static_cast<std::size_t>(rng.between(0, last))];
}

inline bool chance(Rng& rng, std::int64_t percent) { return rng.between(0, 99) < percent; }

}  // namespace attest::proptest
