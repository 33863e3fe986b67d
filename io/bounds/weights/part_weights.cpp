#include "io/bounds/weights/part_weights.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "core/rng.hpp"

namespace attest::io {
namespace {

constexpr std::int64_t kHeaviest = 64;  // of rounded weights

using Grid = std::vector<std::vector<double>>;

struct Part {
  std::vector<std::size_t> rows, columns;
  double weight = 0;
};

// Finds heavy parts by taking the heaviest columns of some rows and the heaviest rows of these
// columns, in turns. The part found need not be the heaviest.
class HeavyParts {
 public:
  HeavyParts(const Grid& grid, const PartCosts& costs, int starts)
      : grid_(grid), costs_(costs), starts_(starts), order_(grid.size()) {
    std::iota(order_.begin(), order_.end(), std::size_t{0});
  }

  // Returns the heaviest part of all searched shapes, compared by the limit that each needs.
  Part heaviest(Rng& rng) {
    Part best;
    look_at(costs_.full, 3, starts_, rng, best);
    const int few = (starts_ + 7) / 8;
    for (int eighths = 7; eighths >= 5; --eighths) {
      look_at(costs_.full * eighths / 8, 1, few, rng, best);
    }
    for (int beyond = 1; beyond <= costs_.beyond; ++beyond) {
      look_at(costs_.full + beyond, 1, few, rng, best);
    }
    return best;
  }

  // The weight of a full part at the same limit.
  double scaled(const Part& part) const {
    return part.weight * 2 * costs_.full /
           std::max(costs_.allowance(static_cast<int>(part.rows.size()),
                                     static_cast<int>(part.columns.size())),
                    1);
  }

 private:
  // Parts of that cost, half of it, more or less, for rows.
  void look_at(int cost, int around, int starts, Rng& rng, Part& best) {
    const int half = cost / (2 * costs_.row);
    for (int rows = std::max(half - around, 1); rows <= half + around; ++rows) {
      const int columns = (cost - costs_.row * rows) / costs_.column;
      if (columns < 1) break;
      for (int start = 0; start < starts; ++start) {
        Part part = climbed(rows, columns, rng);
        if (scaled(part) > scaled(best)) best = std::move(part);
      }
    }
  }

  Part climbed(int rows, int columns, Rng& rng) {
    Part part;
    const auto first = std::min<std::ptrdiff_t>(rows, std::ssize(order_));
    for (std::ptrdiff_t n = 0; n < first; ++n) {
      std::swap(order_[static_cast<std::size_t>(n)],
                order_[static_cast<std::size_t>(rng.between(n, std::ssize(order_) - 1))]);
    }
    part.rows.assign(order_.begin(), order_.begin() + first);
    while (true) {
      const double before = part.weight;
      sums_.assign(grid_.front().size(), 0);
      for (const std::size_t row : part.rows) {
        for (std::size_t j = 0; j < sums_.size(); ++j) sums_[j] += grid_[row][j];
      }
      part.columns = heaviest_of(columns);
      sums_.assign(grid_.size(), 0);
      for (std::size_t i = 0; i < sums_.size(); ++i) {
        for (const std::size_t column : part.columns) sums_[i] += grid_[i][column];
      }
      part.rows = heaviest_of(rows);
      part.weight = 0;
      for (const std::size_t row : part.rows) part.weight += sums_[row];
      // More by rounding alone is no more: a stop of the search, on which no proof depends.
      if (part.weight <= before * (1 + std::ldexp(1.0, -30))) return part;
    }
  }

  std::vector<std::size_t> heaviest_of(int count) const {
    std::vector<std::size_t> result(sums_.size());
    std::iota(result.begin(), result.end(), std::size_t{0});
    const auto kept = std::min<std::ptrdiff_t>(count, std::ssize(result));
    std::nth_element(result.begin(), result.begin() + kept, result.end(),
                     [&](std::size_t a, std::size_t b) { return sums_[a] > sums_[b]; });
    result.resize(static_cast<std::size_t>(kept));
    return result;
  }

  const Grid& grid_;
  PartCosts costs_;
  int starts_;
  std::vector<std::size_t> order_;
  std::vector<double> sums_;
};

// Weights from 0 to 1 of which the heaviest parts have lost some, round by round.
Grid lightened(Grid grid, const PartCosts& costs, Rng& rng) {
  constexpr int kRounds = 2000, kCoarseRounds = 1400;
  constexpr double kCoarse = 0.98, kFine = 0.995;
  for (int round = 0; round < kRounds; ++round) {
    const double factor = round < kCoarseRounds ? kCoarse : kFine;
    const Part part = HeavyParts(grid, costs, 16).heaviest(rng);
    for (const std::size_t row : part.rows) {
      for (const std::size_t column : part.columns) grid[row][column] *= factor;
    }
  }
  return grid;
}

// The weight of the heaviest part that is known, or where that is not proved within half of the
// steps left, or the search finds a heavier one, more and more. `found`: what some part is known to
// have.
std::optional<PartLimit> proved_limit(const WeightGrid& grid, const PartCosts& costs, double found,
                                      std::int64_t steps) {
  for (const double above : {0.0, 0.0, 0.005, 0.01, 0.02, 0.04, 0.08}) {
    const PartLimit limit{costs, static_cast<std::int64_t>(std::ceil(found * (1 + above)))};
    const PartSearch search = prove_limit(grid, limit, steps / 2);
    if (search.proved) return limit;
    steps -= search.steps;
    if (search.least) found = static_cast<double>(*search.least);
  }
  return std::nullopt;
}

double heaviest_known(const Grid& grid, const PartCosts& costs, Rng& rng) {
  HeavyParts parts(grid, costs, 1000);
  return parts.scaled(parts.heaviest(rng));
}

// The share of the pairs of two classes that is visible.
Grid visible_shares(const ClassGrid& grid) {
  Grid shares;
  for (std::size_t i = 0; i < grid.rows.size(); ++i) {
    auto& row = shares.emplace_back();
    for (std::size_t j = 0; j < grid.keys.size(); ++j) {
      row.push_back(static_cast<double>(grid.pairs[i][j]) /
                    (static_cast<double>(grid.rows[i]) * static_cast<double>(grid.keys[j])));
    }
  }
  return shares;
}

double sum(const Grid& grid) {
  return std::accumulate(grid.begin(), grid.end(), 0.0, [](double before, const auto& row) {
    return std::accumulate(row.begin(), row.end(), before);
  });
}

// Weights from 0 to 64, the nearest whole ones.
Grid rounded(Grid grid) {
  double greatest = 0;
  for (const auto& row : grid) {
    greatest = std::max(greatest, *std::max_element(row.begin(), row.end()));
  }
  for (auto& row : grid) {
    for (double& weight : row)
      weight = std::round(weight / greatest * static_cast<double>(kHeaviest));
  }
  return grid;
}

}  // namespace

std::optional<PartWeights> part_weights(const ClassGrid& grid, const PartCosts& costs) {
  constexpr std::ptrdiff_t kLeastClasses = 32;
  constexpr double kLeastDegree = 3, kLeastGain = 1.05;
  const std::ptrdiff_t rows = std::ssize(grid.rows), keys = std::ssize(grid.keys);
  if (rows + keys < kLeastClasses) return std::nullopt;
  const Grid shares = visible_shares(grid);
  const double visible = sum(shares);
  if (visible < kLeastDegree * static_cast<double>(std::max(rows, keys))) return std::nullopt;
  Rng rng(1);
  const Grid weights = rounded(lightened(shares, costs, rng));

  PartWeights result;
  result.heaviest = kHeaviest;
  double all = 0;  // of the visible pairs
  for (std::size_t i = 0; i < weights.size(); ++i) {
    for (std::size_t j = 0; j < weights[i].size(); ++j) {
      result.weight[i][j] = static_cast<std::int16_t>(weights[i][j]);
      all += weights[i][j] * shares[i][j];
    }
  }
  const double found = heaviest_known(weights, costs, rng);
  // Full parts that the weights are worth, and that the pairs are if all of one can be visible.
  const double dense =
      static_cast<double>(costs.full) * costs.full / (4 * costs.row * costs.column);
  if (all / found < kLeastGain * visible / dense) return std::nullopt;
  const auto limit = proved_limit(result.weight, costs, found, std::int64_t{1} << 30);
  if (!limit) return std::nullopt;
  result.limits.push_back(*limit);
  PartCosts other = costs;
  for (other.full = costs.full / 2; other.full <= costs.full * 3 / 2; other.full += costs.row) {
    if (other.full == costs.full) continue;
    if (!can_search(other)) break;
    constexpr std::int64_t kFewSteps = std::int64_t{1} << 25;
    const auto proved =
        proved_limit(result.weight, other, heaviest_known(weights, other, rng), kFewSteps);
    if (!proved) break;
    result.limits.push_back(*proved);
  }
  return result;
}

const std::optional<ClassGrid>& DenseParts::grid() const {
  std::call_once(looked_at_, [this] { grid_ = class_grid(problem_); });
  return grid_;
}

const std::optional<PartWeights>& DenseParts::weights(const PartCosts& costs) const {
  const std::lock_guard lock(weighing_);
  auto found = weights_.find(costs);
  if (found == weights_.end()) {
    found = weights_.emplace(costs, grid() ? part_weights(*grid(), costs) : std::nullopt).first;
  }
  return found->second;
}

}  // namespace attest::io
