#include "io/bounds/weights/share_limits.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "core/error.hpp"
#include "core/rng.hpp"
#include "core/testing/catch.hpp"
#include "io/bounds/segments.hpp"

namespace attest::io {
namespace {

constexpr std::size_t kClasses = 6;  // of rows, and as many of columns

// Few are light: parts of several classes are heavy.
WeightGrid random_weights(Rng& rng) {
  WeightGrid grid{};
  for (std::size_t i = 0; i < kClasses; ++i) {
    for (std::size_t j = 0; j < kClasses; ++j) {
      grid[i][j] = static_cast<std::int16_t>(rng.between(0, 2) == 0 ? rng.between(0, 64) : 64);
    }
  }
  return grid;
}

// The most weight of parts that cost no more, among all of them.
std::int64_t heaviest_part(const WeightGrid& grid, const PartCosts& costs, int cost) {
  constexpr unsigned kSets = 1U << kClasses;
  std::int64_t heaviest = 0;
  for (unsigned rows = 0; rows < kSets; ++rows) {
    for (unsigned columns = 0; columns < kSets; ++columns) {
      if (costs.of(std::popcount(rows), std::popcount(columns)) > cost) continue;
      std::int64_t weight = 0;
      for (std::size_t i = 0; i < kClasses; ++i) {
        for (std::size_t j = 0; j < kClasses; ++j) {
          if ((rows >> i & columns >> j & 1) != 0) weight += grid[i][j];
        }
      }
      heaviest = std::max(heaviest, weight);
    }
  }
  return heaviest;
}

// With limits that some part reaches: for each cost in `full` and what is beyond it.
PartWeights limited(const WeightGrid& grid, PartCosts costs, const std::vector<int>& full) {
  PartWeights weights{grid, 64, {}};
  for (const int cost : full) {
    costs.full = cost;
    PartLimit limit{costs, 0};
    for (int within = costs.of(1, 1); within <= costs.reach(); ++within) {
      // Twice the cost, and what is beyond a full part once more.
      const int allowance = 2 * within + std::max(within - costs.full, 0);
      limit.most = std::max(
          limit.most, (heaviest_part(grid, costs, within) * 2 * cost + allowance - 1) / allowance);
    }
    weights.limits.push_back(limit);
  }
  return weights;
}

struct Shares {
  std::array<double, kClasses> rows{}, columns{};
  double cost = 0, weight = 0;  // of pairs of whole classes, 1 at most
};

// The heaviest columns for some shares of rows, and the heaviest rows for these, for given costs.
Shares heavy_shares(const WeightGrid& grid, const PartCosts& costs, double of_rows,
                    double of_columns, Rng& rng) {
  Shares shares;
  std::array<double, kClasses> value{};
  for (double& one : value) one = rng.uniform();
  const auto take = [&](std::array<double, kClasses>& taken, double count) {
    std::array<std::size_t, kClasses> order{0, 1, 2, 3, 4, 5};
    std::sort(order.begin(), order.end(),
              [&](std::size_t a, std::size_t b) { return value[a] > value[b]; });
    for (const std::size_t one : order) {
      taken[one] = std::min(count, 1.0);
      count -= taken[one];
    }
  };
  take(shares.rows, of_rows / costs.row);
  for (int round = 0; round < 4; ++round) {
    value = {};
    for (std::size_t i = 0; i < kClasses; ++i) {
      for (std::size_t j = 0; j < kClasses; ++j) value[j] += shares.rows[i] * grid[i][j];
    }
    take(shares.columns, of_columns / costs.column);
    value = {};
    for (std::size_t i = 0; i < kClasses; ++i) {
      for (std::size_t j = 0; j < kClasses; ++j) value[i] += shares.columns[j] * grid[i][j];
    }
    take(shares.rows, of_rows / costs.row);
  }
  for (std::size_t i = 0; i < kClasses; ++i) {
    shares.cost += costs.row * shares.rows[i] + costs.column * shares.columns[i];
    for (std::size_t j = 0; j < kClasses; ++j) {
      shares.weight += shares.rows[i] * shares.columns[j] * grid[i][j] / 64.0;
    }
  }
  return shares;
}

struct Kind {
  PartCosts costs;
  std::vector<int> full;
};

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all{{{1, 1, 8, 0}, {8}},
                                     {{1, 1, 8, 0}, {8, 4, 5, 6, 7}},
                                     {{3, 4, 24, 7}, {24}},
                                     {{3, 4, 24, 7}, {24, 12, 15, 18, 21}}};
  return all;
}

TEST_CASE("shares of classes", "[io][bounds]") {
  Rng rng(7);
  for (const Kind& kind : kinds()) {
    int beyond = 0;
    for (int mask = 0; mask < 8; ++mask) {
      const WeightGrid grid = random_weights(rng);
      const PartWeights weights = limited(grid, kind.costs, kind.full);
      const ShareLimits limits(weights);
      PartWeights lighter = weights;  // limits that do not hold
      for (PartLimit& limit : lighter.limits) limit.most = limit.most * 9 / 10;
      const ShareLimits wrong(lighter);
      for (int trial = 0; trial < 2000; ++trial) {
        const double rows = kind.costs.row * 6 * rng.uniform();
        const double columns = kind.costs.column * 6 * rng.uniform();
        const Shares shares = heavy_shares(grid, kind.costs, rows, columns, rng);
        INFO("shares that cost " << shares.cost << " weigh " << shares.weight);
        CHECK(shares.weight <= rounded_up(limits.most(shares.cost)));
        if (shares.weight > wrong.most(shares.cost)) ++beyond;
      }
    }
    CHECK(beyond > 0);
  }
}

// With more limits it is less, and a part's limit is no more than those of its shares.
TEST_CASE("limits of shares", "[io][bounds]") {
  Rng rng(8);
  const WeightGrid grid = random_weights(rng);
  for (std::size_t kind = 0; kind < kinds().size(); kind += 2) {
    const PartCosts costs = kinds()[kind].costs;
    const ShareLimits one(limited(grid, costs, kinds()[kind].full));
    const ShareLimits more(limited(grid, costs, kinds()[kind + 1].full));
    int less = 0;
    double before = 0;
    for (double cost = 0; cost < 50; cost += 1 / 64.0) {
      CHECK(more.most(cost) <= one.most(cost));
      CHECK(more.most(cost) >= before);
      before = more.most(cost);
      if (more.most(cost) < one.most(cost)) ++less;
      const int whole = static_cast<int>(cost);
      if (whole <= costs.full) {
        CHECK(more.most(cost) * 64 >= static_cast<double>(heaviest_part(grid, costs, whole)));
      }
    }
    CHECK(less > 0);
  }
}

// Not less than the densest part, nor much more but where parts are less dense than one of a
// fraction of a class can be.
TEST_CASE("density of shares", "[io][bounds]") {
  Rng rng(9);
  const auto check = [](const PartWeights& weights, bool dense) {
    const ShareLimits limits(weights);
    double before = 0;
    for (double weight = 0.05; weight < 40; weight *= 1.05) {
      double densest = 0;
      for (double cost = 0.003; cost < 200; cost += cost < 2 ? 0.001 : 0.01) {
        densest = std::max(densest, std::min(weight, limits.most(cost)) / cost);
      }
      INFO("weight " << weight);
      CHECK(rounded_up(limits.density(weight)) >= densest);
      CHECK(limits.density(weight) >= before);
      before = limits.density(weight);
      // Entries are 1/256 apart.
      if (dense) CHECK(limits.density(weight) <= densest * (1 + 1 / 64.0));
    }
  };
  for (const Kind& kind : kinds()) check(limited(random_weights(rng), kind.costs, kind.full), true);
  for (const std::int64_t most : {16, 64, 100, 160}) {
    check({WeightGrid{}, 64, {{{1, 1, 16, 0}, most}}}, false);
  }
}

TEST_CASE("limits that reach too few parts", "[io][bounds]") {
  Rng rng(10);
  CHECK_THROWS_AS(ShareLimits(limited(random_weights(rng), {3, 4, 24, 6}, {24})), InternalError);
}

}  // namespace
}  // namespace attest::io
