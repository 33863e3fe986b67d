#include "io/bounds/class_grid.hpp"

#include <algorithm>
#include <cstddef>

#include "core/sparsity/row_classes.hpp"
#include "io/bounds/dense_parts.hpp"
#include "io/words.hpp"

namespace attest::io {
namespace {

constexpr std::int64_t kMostPairs = std::int64_t{1} << 26;

bool alike(const std::vector<Sequence>& sequences) {
  return std::all_of(sequences.begin(), sequences.end(), [&](const Sequence& sequence) {
    const Sequence& first = sequences.front();
    return sequence.q_length == first.q_length && sequence.k_length == first.k_length &&
           sequence.visible_keys == first.visible_keys;
  });
}

// The pairs of the rows that see at least two keys.
BooleanMatrix visible_pairs(const Pattern& pattern, const Sequence& sequence) {
  BooleanMatrix pairs{sequence.q_length, sequence.k_length, {}};
  pairs.entries.resize(static_cast<std::size_t>(pairs.rows * pairs.columns));
  for (std::int64_t i = 0; i < pairs.rows; ++i) {
    const auto row = pairs.entries.begin() + i * pairs.columns;
    const KeyRange band = pattern.band(sequence, i);
    std::int64_t degree = 0;
    for (std::int64_t j = band.begin; j < band.end; ++j) {
      row[j] = pattern.visible(sequence, i, j) ? 1 : 0;
      degree += row[j];
    }
    if (degree < 2) std::fill(row, row + pairs.columns, char{0});
  }
  return pairs;
}

// The classes that see, or are seen by, anything.
std::vector<std::vector<std::int64_t>> seeing_classes(const BooleanMatrix& matrix) {
  std::vector<std::vector<std::int64_t>> classes = row_classes(matrix);
  std::erase_if(classes, [&](const auto& rows) {
    return matrix.row(rows.front()).find(char{1}) == std::string_view::npos;
  });
  return classes;
}

}  // namespace

std::optional<ClassGrid> class_grid(const Problem& problem) {
  const std::vector<Sequence> sequences = problem.sequences();
  if (!problem.mask.boolean || sequences.empty() || !alike(sequences)) return std::nullopt;
  const Sequence& sequence = sequences.front();
  if (Words(sequence.q_length) * sequence.k_length > kMostPairs) return std::nullopt;
  const BooleanMatrix pairs = visible_pairs(problem.mask, sequence);
  const auto rows = seeing_classes(pairs);
  if (rows.empty() || rows.size() > kMostClasses) return std::nullopt;
  const auto keys = seeing_classes(pairs.transposed());
  if (keys.size() > kMostClasses) return std::nullopt;

  ClassGrid grid;
  grid.copies = (Words(static_cast<std::int64_t>(sequences.size())) * problem.num_heads_kv).value();
  for (const auto& members : rows) {
    grid.rows.push_back(
        (Words(static_cast<std::int64_t>(members.size())) * problem.group_size()).value());
    auto& seen = grid.visible.emplace_back();
    for (const auto& others : keys) {
      seen.push_back(pairs.row(members.front())[static_cast<std::size_t>(others.front())]);
    }
  }
  for (const auto& members : keys) grid.keys.push_back(static_cast<std::int64_t>(members.size()));
  return grid;
}

}  // namespace attest::io
