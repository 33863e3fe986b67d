#include "io/bounds/part_weights.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "core/rng.hpp"

namespace attest::io {
namespace {

constexpr int kIndices = 16;      // classes of a part
constexpr double kLightest = 64;  // weights are rounded to 1/64 of the greatest

using Grid = std::vector<std::vector<double>>;

struct Part {
  std::vector<std::size_t> rows, columns;
  double weight = 0;

  // What limits of parts are about: the weight with 16 classes, at the same weight per class.
  double scaled() const {
    return weight * kIndices / static_cast<double>(rows.size() + columns.size());
  }
};

// Finds heavy parts by taking the heaviest columns of some rows and the heaviest rows of these
// columns, in turns. What it returns need not be the heaviest.
class HeavyParts {
 public:
  HeavyParts(const Grid& grid, int starts) : grid_(grid), starts_(starts), order_(grid.size()) {
    std::iota(order_.begin(), order_.end(), std::size_t{0});
  }

  // Of all shapes that are searched, by the weight per class.
  Part heaviest(Rng& rng) {
    Part best;
    best.rows.push_back(0);
    for (int indices = kIndices; indices >= kIndices - 6; indices -= 2) {
      const int reach = indices == kIndices ? 3 : 1;
      for (int rows = indices / 2 - reach; rows <= indices / 2 + reach; ++rows) {
        const int starts = indices == kIndices ? starts_ : (starts_ + 7) / 8;
        for (int start = 0; start < starts; ++start) {
          Part part = climbed(rows, indices - rows, rng);
          if (part.scaled() > best.scaled()) best = std::move(part);
        }
      }
    }
    return best;
  }

 private:
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
  int starts_;
  std::vector<std::size_t> order_;
  std::vector<double> sums_;
};

// Weights from 0 to 1, after so many rounds.
Grid lightened(Grid grid, int rounds, Rng& rng) {
  constexpr double kFactor = 0.98;
  for (int round = 0; round < rounds; ++round) {
    const Part part = HeavyParts(grid, 16).heaviest(rng);
    for (const std::size_t row : part.rows) {
      for (const std::size_t column : part.columns) grid[row][column] *= kFactor;
    }
  }
  return grid;
}

// The weight of the heaviest part that is known, or a limit that holds for those that the
// search finds; if that takes too many steps, one that is easier to prove. `found`: what some part
// is known to have.
std::optional<PartLimit> proved_limit(const WeightGrid& grid, double found) {
  constexpr double kFarAbove = 1.1;
  std::int64_t steps = std::int64_t{1} << 29;
  PartLimit limit{kIndices, static_cast<std::int64_t>(std::ceil(found))};
  while (steps > 0) {
    const PartSearch search = prove_limit(grid, limit, steps);
    if (search.proved) return limit;
    steps -= search.steps;
    if (!search.least) break;
    limit.most = *search.least;
  }
  limit.most = static_cast<std::int64_t>(static_cast<double>(limit.most) * kFarAbove);
  if (prove_limit(grid, limit, std::int64_t{1} << 28).proved) return limit;
  return std::nullopt;
}

// Fewer visible pairs of classes than that are met in few visits.
bool sparse(const ClassGrid& grid) {
  constexpr std::ptrdiff_t kLeastDegree = 4;
  std::ptrdiff_t visible = 0;
  for (const auto& row : grid.visible) visible += std::count(row.begin(), row.end(), char{1});
  return visible < kLeastDegree * std::max(std::ssize(grid.rows), std::ssize(grid.keys));
}

}  // namespace

std::optional<PartWeights> part_weights(const ClassGrid& grid) {
  if (grid.rows.size() + grid.keys.size() < 2 * kIndices || sparse(grid)) return std::nullopt;
  Grid weights;
  for (const auto& row : grid.visible) weights.emplace_back(row.begin(), row.end());
  Rng rng(1);
  const double all = static_cast<double>(kIndices) * kIndices / 4;
  if (HeavyParts(weights, 100).heaviest(rng).scaled() > all * 0.9) return std::nullopt;
  weights = lightened(std::move(weights), 1000, rng);

  double greatest = 0;
  for (const auto& row : weights) {
    greatest = std::max(greatest, *std::max_element(row.begin(), row.end()));
  }
  PartWeights result;
  result.heaviest = static_cast<std::int64_t>(kLightest);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    for (std::size_t j = 0; j < weights[i].size(); ++j) {
      weights[i][j] = std::round(weights[i][j] / greatest * kLightest);
      result.weight[i][j] = static_cast<std::int16_t>(weights[i][j]);
    }
  }
  const auto limit = proved_limit(result.weight, HeavyParts(weights, 1000).heaviest(rng).scaled());
  if (!limit) return std::nullopt;
  result.limit = *limit;
  return result;
}

const std::optional<ClassGrid>& DenseParts::grid() const {
  std::call_once(looked_at_, [this] { grid_ = class_grid(problem_); });
  return grid_;
}

const std::optional<PartWeights>& DenseParts::weights() const {
  std::call_once(weighed_, [this] {
    if (grid()) weights_ = part_weights(*grid());
  });
  return weights_;
}

}  // namespace attest::io
