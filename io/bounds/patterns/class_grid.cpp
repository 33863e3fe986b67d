#include "io/bounds/patterns/class_grid.hpp"

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "core/mask/sparsity/row_classes.hpp"
#include "io/bounds/weights/dense_parts.hpp"
#include "io/machine/words.hpp"

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

using Classes = std::vector<std::vector<std::int64_t>>;  // of rows, by number

// The classes that see, or are seen by, anything.
Classes seeing_classes(const BooleanMatrix& matrix) {
  Classes classes = row_classes(matrix);
  std::erase_if(classes, [&](const auto& rows) {
    return matrix.row(rows.front()).find(char{1}) == std::string_view::npos;
  });
  return classes;
}

// Classes larger than the one in the middle in even pieces no larger than it, if not too many: how
// dense parts can be is known in units of the largest. Block rows that are equal by chance are two
// classes so.
Classes split(const Classes& classes) {
  std::vector<std::size_t> sizes;
  for (const auto& members : classes) sizes.push_back(members.size());
  const auto middle = sizes.begin() + std::ssize(sizes) / 2;
  std::nth_element(sizes.begin(), middle, sizes.end());
  Classes pieces;
  for (const auto& members : classes) {
    const std::size_t count = (members.size() + *middle - 1) / *middle;
    for (std::size_t piece = 0; piece < count; ++piece) {
      const auto place = [&](std::size_t n) {
        return members.begin() + static_cast<std::ptrdiff_t>(members.size() * n / count);
      };
      pieces.emplace_back(place(piece), place(piece + 1));
    }
  }
  return pieces.size() > kMostClasses ? classes : pieces;
}

struct PairClasses {
  Classes rows, keys;

  explicit PairClasses(const BooleanMatrix& pairs)
      : rows(seeing_classes(pairs)), keys(seeing_classes(pairs.transposed())) {}
  bool few() const { return !rows.empty() && std::max(rows.size(), keys.size()) <= kMostClasses; }
};

std::int64_t pairs_between(const BooleanMatrix& pairs, const std::vector<std::int64_t>& rows,
                           const std::vector<std::int64_t>& keys) {
  std::int64_t visible = 0;
  for (const std::int64_t row : rows) {
    const std::string_view seen = pairs.row(row);
    for (const std::int64_t key : keys) visible += seen[static_cast<std::size_t>(key)];
  }
  return visible;
}

}  // namespace

std::optional<ClassGrid> class_grid(const Problem& problem) {
  const std::vector<Sequence> sequences = problem.sequences();
  if (!problem.mask.boolean || sequences.empty() || !alike(sequences)) return std::nullopt;
  const Sequence& sequence = sequences.front();
  if (Words(sequence.q_length) * sequence.k_length > kMostPairs) return std::nullopt;
  const BooleanMatrix pairs = visible_pairs(problem.mask, sequence);
  PairClasses classes(pairs);
  if (!classes.few() && problem.mask.banded()) {
    Pattern whole = problem.mask;
    whole.remove_window();
    classes = PairClasses(visible_pairs(whole, sequence));
  }
  if (!classes.few()) return std::nullopt;
  const Classes rows = split(classes.rows), keys = split(classes.keys);

  ClassGrid grid;
  grid.copies = (Words(static_cast<std::int64_t>(sequences.size())) * problem.num_heads_kv).value();
  for (const auto& members : rows) {
    grid.rows.push_back(
        (Words(static_cast<std::int64_t>(members.size())) * problem.group_size()).value());
    auto& seen = grid.pairs.emplace_back();
    for (const auto& others : keys) {
      seen.push_back((Words(pairs_between(pairs, members, others)) * problem.group_size()).value());
    }
  }
  for (const auto& members : keys) grid.keys.push_back(static_cast<std::int64_t>(members.size()));
  return grid;
}

}  // namespace attest::io
