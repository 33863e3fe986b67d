#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "core/rng.hpp"
#include "io/bounds/weights/part_weights.hpp"

namespace attest::io::testing {

/// How many words of the rows and of the keys of each class are used.
struct UsedWords {
  std::vector<double> rows, keys;
};

/// Returns the words used of each class: classes with the greatest value first, whole while words
/// last.
inline std::vector<double> most_valuable(const std::vector<std::int64_t>& members, double of_one,
                                         const std::vector<double>& value, double words) {
  std::vector<std::size_t> order(members.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return value[a] > value[b]; });
  std::vector<double> used(members.size());
  for (const std::size_t one : order) {
    used[one] = std::min(words, static_cast<double>(members[one]) * of_one);
    words -= used[one];
  }
  return used;
}

/// Words with much weight among them, found in turns: rows for the keys and keys for the rows. A
/// row has `of_row` words and a key `of_key`.
inline UsedWords heavy_words(const ClassGrid& grid, const PartWeights& weights, double of_row,
                             double of_key, double row_words, double key_words, Rng& rng) {
  std::vector<double> drawn(grid.rows.size());
  for (double& value : drawn) value = rng.uniform();
  UsedWords used{most_valuable(grid.rows, of_row, drawn, row_words), {}};
  for (int round = 0; round < 4; ++round) {
    std::vector<double> by_key(grid.keys.size()), by_row(grid.rows.size());
    for (std::size_t i = 0; i < by_row.size(); ++i) {
      for (std::size_t j = 0; j < by_key.size(); ++j) {
        by_key[j] += used.rows[i] * weights.weight[i][j];
      }
    }
    used.keys = most_valuable(grid.keys, of_key, by_key, key_words);
    for (std::size_t i = 0; i < by_row.size(); ++i) {
      for (std::size_t j = 0; j < by_key.size(); ++j) {
        by_row[i] += used.keys[j] * weights.weight[i][j];
      }
    }
    used.rows = most_valuable(grid.rows, of_row, by_row, row_words);
  }
  return used;
}

/// The sum over pairs of the words of their row and key and of their weight.
inline double weight_of(const ClassGrid& grid, const PartWeights& weights, const UsedWords& used) {
  double weight = 0;
  for (std::size_t i = 0; i < grid.rows.size(); ++i) {
    for (std::size_t j = 0; j < grid.keys.size(); ++j) {
      weight += used.rows[i] * used.keys[j] * weights.weight[i][j];
    }
  }
  return weight / static_cast<double>(weights.heaviest);
}

}  // namespace attest::io::testing
