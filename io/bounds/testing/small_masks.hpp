#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <vector>

#include "core/rng.hpp"
#include "io/bounds/patterns/pattern_degrees.hpp"

/// Masks with the keys of a row as bits, for random segments.
namespace attest::io::testing {

/// A pattern of at most 8 x 8 pairs, the keys of a row as bits, at least two to a row.
inline std::vector<unsigned> random_rows(Rng& rng, std::int64_t rows, std::int64_t keys) {
  std::vector<unsigned> result;
  const std::int64_t percent = rng.between(15, 90);
  while (static_cast<std::int64_t>(result.size()) < rows) {
    unsigned row = 0;
    for (std::int64_t key = 0; key < keys; ++key) {
      if (rng.between(0, 99) < percent) row |= 1u << key;
    }
    if (std::popcount(row) >= 2) result.push_back(row);
  }
  return result;
}

inline PatternComponent component_of(const std::vector<unsigned>& rows) {
  PatternComponent result;
  for (const unsigned row : rows) result.row_degrees.push_back(std::popcount(row));
  for (int key = 0; key < 8; ++key) {
    std::int64_t degree = 0;
    for (const unsigned row : rows) degree += row >> key & 1u;
    if (degree > 0) result.key_degrees.push_back(degree);
  }
  std::sort(result.row_degrees.begin(), result.row_degrees.end(), std::greater<>());
  std::sort(result.key_degrees.begin(), result.key_degrees.end(), std::greater<>());
  return result;
}

}  // namespace attest::io::testing
