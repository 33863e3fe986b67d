#include "io/bounds/weights/pair_density.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "io/bounds/segments.hpp"
#include "io/machine/words.hpp"

namespace attest::io {
namespace {

// The greatest number of the grid entry that begins at `fewest`.
std::int64_t last_of_entry(std::int64_t fewest) {
  constexpr std::int64_t kPerOctave = 512;
  return fewest + std::max<std::int64_t>(fewest / kPerOctave, 1) - 1;
}

std::int64_t indices_of(const PatternComponent& component) {
  return static_cast<std::int64_t>(component.row_degrees.size() + component.key_degrees.size());
}

}  // namespace

DegreeLimit::Diagram::Diagram(const std::vector<std::int64_t>& descending, std::int64_t height,
                              std::int64_t width)
    : height_(height), width_(width) {
  if (!std::is_sorted(descending.rbegin(), descending.rend()) ||
      (!descending.empty() && descending.back() < 0)) {
    throw InternalError("degrees are not in descending order down to 0");
  }
  at_least_.resize(descending.empty() ? 1 : static_cast<std::size_t>(descending.front()) + 1);
  sums_.push_back(0);
  for (const std::int64_t degree : descending) {
    sums_.push_back(sums_.back() + degree);
    ++at_least_[static_cast<std::size_t>(degree)];
  }
  for (std::size_t cells = at_least_.size() - 1; cells > 0; --cells) {
    at_least_[cells - 1] += at_least_[cells];
  }
  static_cast<void>(Words(2) * sums_.back() * height_ * width_);  // all sums below stay in range
}

std::int64_t DegreeLimit::Diagram::cells(std::int64_t rows, std::int64_t columns) const {
  const std::int64_t known = static_cast<std::int64_t>(at_least_.size());
  const std::int64_t needed = tiles(columns, width_);
  const std::int64_t long_ones =
      needed < known ? at_least_[static_cast<std::size_t>(needed)] : std::int64_t{0};
  if (rows <= height_ * long_ones) return rows * columns;
  const auto sum = [this](std::int64_t numbers) {
    return sums_[static_cast<std::size_t>(numbers)];
  };
  const std::int64_t whole = rows / height_, part = rows % height_;
  const std::int64_t last = part > 0 ? part * width_ * (sum(whole + 1) - sum(whole)) : 0;
  return height_ * (long_ones * columns + width_ * (sum(whole) - sum(long_ones))) + last;
}

DegreeLimit::DegreeLimit(const PatternComponent& component, IndexWords words)
    : rows_(component.row_degrees, words.row, words.key),
      keys_(component.key_degrees, words.key, words.row) {}

std::int64_t DegreeLimit::pairs_within(std::int64_t rows, std::int64_t keys) const {
  return std::min(rows_.cells(rows, keys), keys_.cells(keys, rows));
}

std::int64_t DegreeLimit::most_pairs(std::int64_t indices) const {
  std::int64_t low = std::max<std::int64_t>(indices - keys_.size(), 0);
  std::int64_t high = std::min(indices, rows_.size());
  // The first number of rows after which one more does not help.
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    const bool rising =
        pairs_within(middle, indices - middle) < pairs_within(middle + 1, indices - middle - 1);
    (rising ? low : high) = rising ? middle + 1 : middle;
  }
  return pairs_within(low, indices - low);
}

std::int64_t most_on_diagonals(std::int64_t indices, std::int64_t diagonals) {
  const Words all = Words(indices) * indices;
  if (diagonals == 0 || indices <= diagonals) return all.value() / 4;
  const Words outside = Words(indices - diagonals) * (indices - diagonals);
  return (all - outside + 1).value() / 4;
}

PairDensity::PairDensity(const PatternComponent& component)
    : PairDensity(
          [limit = DegreeLimit(component), &component](std::int64_t indices) {
            const std::int64_t by_degrees = std::min(
                limit.most_pairs(indices), most_on_diagonals(indices, component.diagonals));
            return component.neighbourhoods
                       ? std::min(by_degrees, component.neighbourhoods->most_pairs(indices))
                       : by_degrees;
          },
          indices_of(component), component.pairs()) {}

PairDensity PairDensity::of_geometric_mean(const PatternComponent& component) {
  // A mean between n/2 and (n+1)/2 is looked at as the first for rows and keys, the second for
  // pairs.
  const auto most_pairs = [&component](std::int64_t indices) {
    const std::int64_t next = indices + 1;
    const std::int64_t all = most_on_diagonals(next, component.diagonals);
    return component.neighbourhoods ? std::min(all, component.neighbourhoods->most_pairs(next))
                                    : all;
  };
  return {most_pairs, indices_of(component), component.pairs()};
}

PairDensity PairDensity::of(const std::function<double(double pairs)>& density,
                            std::int64_t pairs) {
  std::vector<Entry> entries;
  for (std::int64_t fewest = 0, next = 1; fewest <= pairs; fewest = next) {
    next = fewest == 0 ? 1 : last_of_entry(fewest) + 1;
    entries.push_back({fewest, rounded_up(density(static_cast<double>(next)))});
  }
  return PairDensity(std::move(entries));
}

PairDensity::PairDensity(const MostPairs& most_pairs, std::int64_t most_indices,
                         std::int64_t pairs) {
  double best = 0;           // of the sets of fewer than `indices` rows and keys
  std::int64_t indices = 2;  // a row and a key are the fewest with a pair
  std::int64_t within = most_pairs(indices);
  std::int64_t fewest = 1;
  while (true) {
    const std::int64_t most = std::min(last_of_entry(fewest), pairs);
    const auto per_index = [&](std::int64_t count) {
      return rounded_up(static_cast<double>(count) / static_cast<double>(indices));
    };
    while (within < most && indices < most_indices) {
      best = std::max(best, per_index(within));
      within = most_pairs(++indices);
    }
    entries_.push_back({fewest, std::max(best, per_index(std::min(most, within)))});
    if (most == pairs) return;
    fewest = most + 1;
  }
}

double PairDensity::at(double pairs) const {
  const auto next = std::partition_point(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return static_cast<double>(entry.fewest) <= pairs;
  });
  if (next == entries_.begin()) throw InternalError("the density of no pairs");
  return std::prev(next)->density;
}

void PairDensity::include(const PairDensity& other) {
  const std::size_t common = std::min(entries_.size(), other.entries_.size());
  for (std::size_t index = 0; index < common; ++index) {
    entries_[index].density = std::max(entries_[index].density, other.entries_[index].density);
  }
  // Beyond its last entry a pattern has the density of that entry.
  const double own = entries_.back().density;
  const double others = other.entries_.back().density;
  for (std::size_t index = common; index < entries_.size(); ++index) {
    entries_[index].density = std::max(entries_[index].density, others);
  }
  for (std::size_t index = common; index < other.entries_.size(); ++index) {
    entries_.push_back(
        {other.entries_[index].fewest, std::max(own, other.entries_[index].density)});
  }
}

}  // namespace attest::io
