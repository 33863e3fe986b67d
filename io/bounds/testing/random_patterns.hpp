#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "core/rng.hpp"
#include "io/bounds/patterns/pattern_degrees.hpp"

/// Small patterns for random segments.
namespace attest::io::testing {

/// Rows x columns, 0 or 1.
using Table = std::vector<std::vector<int>>;

inline Table random_table(Rng& rng, std::size_t rows, std::int64_t columns, std::int64_t percent) {
  Table table(rows);
  for (auto& row : table) {
    for (std::int64_t c = 0; c < columns; ++c) row.push_back(rng.between(0, 99) < percent ? 1 : 0);
  }
  return table;
}

inline int sum(const Table& table) {
  int total = 0;
  for (const auto& row : table) total += static_cast<int>(std::count(row.begin(), row.end(), 1));
  return total;
}

/// A pattern with at least two keys to a row.
inline Table random_pattern(Rng& rng) {
  const std::int64_t keys = rng.between(2, 6), percent = rng.between(20, 100);
  Table sees;
  const auto rows = static_cast<std::size_t>(rng.between(1, 6));
  while (sees.size() < rows) {
    Table row = random_table(rng, 1, keys, percent);
    if (sum(row) >= 2) sees.push_back(row.front());
  }
  return sees;
}

inline PatternComponent component_of(const Table& sees) {
  PatternComponent result;
  std::vector<std::int64_t> keys(sees.front().size());
  for (const auto& row : sees) {
    result.row_degrees.push_back(std::count(row.begin(), row.end(), 1));
    for (std::size_t j = 0; j < keys.size(); ++j) keys[j] += row[j];
  }
  for (const std::int64_t degree : keys) {
    if (degree > 0) result.key_degrees.push_back(degree);
  }
  std::sort(result.row_degrees.begin(), result.row_degrees.end(), std::greater<>());
  std::sort(result.key_degrees.begin(), result.key_degrees.end(), std::greater<>());
  return result;
}

}  // namespace attest::io::testing
