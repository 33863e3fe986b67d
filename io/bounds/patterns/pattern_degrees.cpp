#include "io/bounds/patterns/pattern_degrees.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <tuple>
#include <utility>

#include "io/machine/words.hpp"

namespace attest::io {
namespace {

// Disjoint sets of keys.
class KeySets {
 public:
  explicit KeySets(std::int64_t keys) : parent_(static_cast<std::size_t>(keys)) {
    std::iota(parent_.begin(), parent_.end(), std::size_t{0});
  }

  std::size_t find(std::size_t key) {
    while (parent_[key] != key) key = parent_[key] = parent_[parent_[key]];
    return key;
  }

  void join(std::size_t a, std::size_t b) { parent_[find(a)] = find(b); }

 private:
  std::vector<std::size_t> parent_;
};

// The visible keys of a row as runs of neighbours.
void visible_runs(const Pattern& pattern, const Sequence& sequence, std::int64_t row,
                  std::vector<KeyRange>& runs) {
  runs.clear();
  const KeyRange band = pattern.band(sequence, row);
  if (!pattern.boolean) {
    if (band.begin < band.end) runs.push_back(band);
    return;
  }
  for (std::int64_t key = band.begin; key < band.end; ++key) {
    if (!pattern.visible(sequence, row, key)) continue;
    if (runs.empty() || runs.back().end < key) runs.push_back({key, key});
    runs.back().end = key + 1;
  }
}

struct Row {
  std::int64_t number;
  std::size_t first_key;
  std::int64_t last_key, keys;
  std::vector<KeyRange> runs;  // kept for the neighbourhoods
};

// Which pairs are looked at, beside the degrees.
enum class Look : std::uint8_t { degrees, pairs };
constexpr std::int64_t kMostPairs = std::int64_t{1} << 24;

// The rows of a component as lists of its keys, by their numbers within the component.
PairLists pair_lists(const std::vector<const Row*>& rows, const std::vector<std::int32_t>& numbers,
                     std::int64_t keys) {
  PairLists lists;
  lists.keys = keys;
  for (const Row* row : rows) {
    auto& list = lists.rows.emplace_back();
    for (const KeyRange& run : row->runs) {
      for (std::int64_t key = run.begin; key < run.end; ++key) {
        list.push_back(numbers[static_cast<std::size_t>(key)]);
      }
    }
  }
  return lists;
}

// From the least value of key - row to the greatest.
std::int64_t diagonals_of(const std::vector<const Row*>& rows) {
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  std::int64_t most = std::numeric_limits<std::int64_t>::min();
  for (const Row* row : rows) {
    least = std::min(least, static_cast<std::int64_t>(row->first_key) - row->number);
    most = std::max(most, row->last_key - row->number);
  }
  return most - least + 1;
}

std::vector<PatternComponent> components_of(const Pattern& pattern, const Sequence& sequence,
                                            Look look) {
  const auto keys = static_cast<std::size_t>(sequence.k_length);
  // Changes from one key to the next of: the rows that see it, the runs that go on to its
  // successor.
  std::vector<std::int64_t> seen(keys + 1), linked(keys + 1);
  KeySets sets(sequence.k_length);
  std::vector<Row> rows;
  std::vector<KeyRange> runs;
  std::int64_t pairs = 0;
  for (std::int64_t i = 0; i < sequence.q_length; ++i) {
    visible_runs(pattern, sequence, i, runs);
    std::int64_t degree = 0;
    for (const KeyRange& run : runs) degree += run.end - run.begin;
    if (degree < 2) continue;
    const auto first = static_cast<std::size_t>(runs.front().begin);
    rows.push_back({i, first, runs.back().end - 1, degree, {}});
    pairs += degree;
    if (look == Look::pairs && pairs <= kMostPairs) rows.back().runs = runs;
    for (const KeyRange& run : runs) {
      const auto begin = static_cast<std::size_t>(run.begin);
      const auto end = static_cast<std::size_t>(run.end);
      ++seen[begin];
      --seen[end];
      ++linked[begin];
      --linked[end - 1];
      sets.join(first, begin);
    }
  }
  for (std::size_t key = 0; key < keys; ++key) {
    if (key > 0) {
      seen[key] += seen[key - 1];
      linked[key] += linked[key - 1];
    }
    if (linked[key] > 0) sets.join(key, key + 1);
  }

  std::map<std::size_t, PatternComponent> components;
  std::map<std::size_t, std::vector<const Row*>> members;
  for (const Row& row : rows) {
    const std::size_t name = sets.find(row.first_key);
    components[name].row_degrees.push_back(row.keys);
    members[name].push_back(&row);
  }
  std::vector<std::int32_t> numbers(keys);
  for (std::size_t key = 0; key < keys; ++key) {
    if (seen[key] == 0) continue;
    auto& degrees = components[sets.find(key)].key_degrees;
    numbers[key] = static_cast<std::int32_t>(degrees.size());
    degrees.push_back(seen[key]);
  }
  std::vector<PatternComponent> result;
  for (auto& [name, component] : components) {
    component.diagonals = diagonals_of(members[name]);
    if (look == Look::pairs && pairs <= kMostPairs) {
      component.neighbourhoods = Neighbourhoods::of(pair_lists(
          members[name], numbers, static_cast<std::int64_t>(component.key_degrees.size())));
    }
    result.push_back(std::move(component));
  }
  return result;
}

// Rows repeated for every query head that shares the keys.
void share_keys(PatternComponent& component, std::int64_t heads) {
  std::vector<std::int64_t> rows;
  for (const std::int64_t degree : component.row_degrees) {
    rows.insert(rows.end(), static_cast<std::size_t>(heads), degree);
  }
  component.row_degrees = std::move(rows);
  if (heads > 1) component.diagonals = 0;  // rows of several heads lie on one another
  for (std::int64_t& degree : component.key_degrees) degree = (Words(degree) * heads).value();
}

// One more component with the same degrees.
void join(PatternComponent& component, const PatternComponent& other) {
  component.copies = (Words(component.copies) + other.copies).value();
  const bool known = component.diagonals > 0 && other.diagonals > 0;
  component.diagonals = known ? std::max(component.diagonals, other.diagonals) : 0;
  if (component.neighbourhoods && other.neighbourhoods) {
    component.neighbourhoods->include(*other.neighbourhoods);
  } else {
    component.neighbourhoods.reset();
  }
}

using Degrees = std::pair<std::vector<std::int64_t>, std::vector<std::int64_t>>;

}  // namespace

std::int64_t PatternComponent::pairs() const {
  Words sum;
  for (const std::int64_t degree : row_degrees) sum += degree;
  return sum.value();
}

PatternDegrees pattern_degrees(const Problem& problem) {
  PatternDegrees result;
  result.extent = extent_of(problem);
  if (problem.mask.boolean) result.dense_parts = std::make_shared<const DenseParts>(problem);
  using Lengths = std::tuple<std::int64_t, std::int64_t, std::int64_t>;
  std::map<Lengths, std::pair<Sequence, std::int64_t>> sequences;
  for (const Sequence& sequence : problem.sequences()) {
    auto& entry = sequences[{sequence.q_length, sequence.k_length, sequence.visible_keys}];
    entry.first = sequence;
    ++entry.second;
  }
  const Look look = problem.mask.boolean && problem.group_size() == 1 ? Look::pairs : Look::degrees;
  std::map<Degrees, PatternComponent> different;
  for (const auto& [lengths, entry] : sequences) {
    const auto& [sequence, count] = entry;
    const Words copies = Words(count) * problem.num_heads_kv;
    for (PatternComponent& component : components_of(problem.mask, sequence, look)) {
      share_keys(component, problem.group_size());
      std::sort(component.row_degrees.begin(), component.row_degrees.end(), std::greater<>());
      std::sort(component.key_degrees.begin(), component.key_degrees.end(), std::greater<>());
      component.copies = copies.value();
      const auto [place, first] =
          different.try_emplace({component.row_degrees, component.key_degrees}, component);
      if (!first) join(place->second, component);
    }
  }
  for (auto& item : different) result.components.push_back(std::move(item.second));
  std::stable_sort(result.components.begin(), result.components.end(),
                   [](const auto& a, const auto& b) { return a.pairs() > b.pairs(); });
  return result;
}

}  // namespace attest::io
