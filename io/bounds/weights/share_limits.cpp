#include "io/bounds/weights/share_limits.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.hpp"
#include "io/bounds/segments.hpp"

namespace attest::io {
namespace {

constexpr int kEntries = 256;  // of a table, for a cost of 1

double squared(double x) { return x * x; }

int greatest_reach(const PartWeights& weights) {
  int reach = 0;
  for (const PartLimit& limit : weights.limits) reach = std::max(reach, limit.costs.reach());
  return reach;
}

// The most weight of parts of whole classes, by cost up to the greatest that is limited.
std::vector<double> whole_parts(const PartWeights& weights) {
  std::vector<double> most(static_cast<std::size_t>(greatest_reach(weights)) + 1,
                           std::numeric_limits<double>::infinity());
  for (const PartLimit& limit : weights.limits) {
    for (int cost = 0; cost <= limit.costs.reach(); ++cost) {
      const double allowed = static_cast<double>(limit.most) *
                             (2 * cost + std::max(cost - limit.costs.full, 0)) /
                             (2.0 * limit.costs.full * static_cast<double>(weights.heaviest));
      double& least = most[static_cast<std::size_t>(cost)];
      least = std::min(least, rounded_up(allowed));
    }
  }
  return most;
}

// The greatest mean of costs that are at most `span` apart, where their mean is `cost`.
double greatest_mean(const std::vector<double>& whole, double cost, int span) {
  double greatest = 0;
  const int last = static_cast<int>(whole.size()) - 1;
  const int below = std::min(static_cast<int>(cost), last - 1);
  for (int low = std::max(below + 1 - span, 0); low <= below; ++low) {
    for (int high = below + 1; high <= std::min(low + span, last); ++high) {
      const double at_low = whole[static_cast<std::size_t>(low)];
      const double at_high = whole[static_cast<std::size_t>(high)];
      greatest = std::max(greatest, at_low + (at_high - at_low) * (cost - low) / (high - low));
    }
  }
  return rounded_up(greatest);
}

// Returns the most that shares of full parts have by the variance of their cost, which is less than
// the mean above near a full part; nothing is known beyond.
double by_variance(const PartLimit& full, std::int64_t heaviest, double cost) {
  const PartCosts& costs = full.costs;
  if (cost > costs.full) return std::numeric_limits<double>::infinity();
  return rounded_up(static_cast<double>(full.most) *
                    (cost + std::hypot(costs.row, costs.column) / 8) /
                    (static_cast<double>(heaviest) * costs.full));
}

}  // namespace

ShareLimits::ShareLimits(const PartWeights& weights) {
  const PartCosts& costs = weights.limits.at(0).costs;
  const bool alike = costs.row == 1 && costs.column == 1;
  const int span = costs.of(1, 1), reach = greatest_reach(weights);
  if (!alike && costs.beyond < span) throw InternalError("shares reach beyond the limited parts");
  per_square_ = rounded_up(1 / (4.0 * costs.row * costs.column));
  const std::vector<double> whole = whole_parts(weights);
  const int last = alike ? reach : reach - span;
  double densest = 0;
  for (int entry = 0; entry <= last * kEntries; ++entry) {
    const double cost = static_cast<double>(entry) / kEntries;
    // Beside all but one of the classes that are limited only one more is whole in the mean.
    const double both = alike ? squared(std::max(cost - (last - 1), 0.)) / 4 : 0;
    double shares = rounded_up(greatest_mean(whole, cost, span) + both);
    if (!alike) {
      shares = std::min(shares, by_variance(weights.limits.front(), weights.heaviest, cost));
    }
    most_.push_back(std::min(shares, per_square_ * squared(cost)));
    if (entry > kEntries) densest = std::max(densest, most_.back() / (cost - 1.0 / kEntries));
    dense_.push_back(rounded_up(densest));
  }
}

double ShareLimits::last() const { return static_cast<double>(most_.size() - 1) / kEntries; }

double ShareLimits::most(double cost) const {
  const double limited = cost > last()
                             ? most_.back() * squared(cost / last())
                             : most_[static_cast<std::size_t>(std::ceil(cost * kEntries))];
  return rounded_up(std::min(limited, per_square_ * squared(cost)));
}

double ShareLimits::density(double weight) const {
  const double visible = std::sqrt(weight * per_square_);
  // Parts that cost at most 1, which no table has, are taken as dense as any are.
  double known = std::min(visible, per_square_);
  if (weight > most_.back()) {
    known = std::max({known, dense_.back(), std::sqrt(weight * most_.back()) / last()});
  } else {
    // The first entry with so much; before it parts have less.
    const auto entry = std::lower_bound(most_.begin(), most_.end(), weight) - most_.begin();
    if (entry <= kEntries) return rounded_up(visible);
    known = std::max({known, dense_[static_cast<std::size_t>(entry) - 1],
                      weight * kEntries / static_cast<double>(entry - 1)});
  }
  return rounded_up(std::min(visible, known));
}

}  // namespace attest::io
