#include "io/bounds/weights/dense_parts.hpp"

#include <algorithm>
#include <bit>
#include <functional>
#include <limits>
#include <numeric>
#include <vector>

#include "core/error.hpp"
#include "core/vector_clones.hpp"
#include "io/machine/words.hpp"

namespace attest::io {
namespace {

using Set = std::uint64_t;  // of rows
static_assert(kMostClasses == 64);

WeightGrid transposed(const WeightGrid& grid) {
  WeightGrid result;
  for (std::size_t i = 0; i < kMostClasses; ++i) {
    for (std::size_t j = 0; j < kMostClasses; ++j) result[j][i] = grid[i][j];
  }
  return result;
}

ATTEST_INLINE_CLONE void add(WeightRow& sums, const WeightRow& row) {
  for (std::size_t j = 0; j < kMostClasses; ++j) {
    sums[j] = static_cast<std::int16_t>(sums[j] + row[j]);
  }
}

WeightRow sum_of(const WeightGrid& rows, Set set) {
  WeightRow sums{};
  for (; set != 0; set &= set - 1) add(sums, rows[static_cast<std::size_t>(std::countr_zero(set))]);
  return sums;
}

// A part beyond a limit has at most so many rows, or at most half of its cost is that of columns.
int most_rows(const PartCosts& costs) { return costs.reach() / (2 * costs.row); }

int columns_beside(const PartCosts& costs, int rows) {
  return (costs.reach() - costs.row * rows) / costs.column;
}

PartCosts transposed(PartCosts costs) {
  std::swap(costs.row, costs.column);
  return costs;
}

// The sum of what lies above the threshold. By lanes: compilers make vectors of them.
ATTEST_INLINE_CLONE std::int64_t excess(const WeightRow& sums, std::int16_t threshold) {
  std::array<std::int16_t, 8> lanes{};
  for (std::size_t j = 0; j < kMostClasses; j += lanes.size()) {
    for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
      lanes[lane] = static_cast<std::int16_t>(
          lanes[lane] + std::max<std::int16_t>(sums[j + lane], threshold) - threshold);
    }
  }
  std::int64_t sum = 0;
  for (const std::int16_t lane : lanes) sum += lane;
  return sum;
}

std::int64_t sum_of_largest(WeightRow sums, int count) {
  const auto end = sums.begin() + count;
  std::nth_element(sums.begin(), end, sums.end(), std::greater<>());
  return std::accumulate(sums.begin(), end, std::int64_t{0});
}

// Test whether the `count` largest have more than `most` in all, which is at least 0. The largest
// have at most excess(t) + t count, for any t.
class LargestExceed {
 public:
  LargestExceed() = default;
  LargestExceed(int count, std::int64_t most)
      : count_(count), most_(most), threshold_(static_cast<std::int16_t>(most / count * 3 / 4)) {}

  ATTEST_INLINE_CLONE bool operator()(const WeightRow& sums) const {
    return excess(sums, threshold_) > most_ - std::int64_t{threshold_} * count_ &&
           sum_of_largest(sums, count_) > most_;
  }

 private:
  int count_ = 1;
  std::int64_t most_ = 0;
  std::int16_t threshold_ = 0;
};

// Let a part be beyond the limit with a rows and b columns. Its k heaviest rows have more than
// (k/a) most N/full weight in its b columns, N its cost, for an allowance is at least 2N. So for
// all sets of k rows that could be these the search looks whether they are all rows of such a part,
// and for a > k goes through all sets of b columns in which they have so much, and looks whether
// any a rows have too much there.
class ColumnSearch {
 public:
  enum class Found { nothing, part, too_much_work };

  ColumnSearch(const WeightGrid& columns, PartLimit limit) : columns_(columns), limit_(limit) {}

  // With `sums` of the k rows, by column. `result` is told how many
  // sets of columns were looked at, and of the part.
  Found run(const WeightRow& sums, int k, std::int64_t most_steps, PartSearch& result) {
    steps_ = 0;
    most_steps_ = most_steps;
    sort(sums);
    Found found = of_rows(sums, k) ? Found::part : Found::nothing;
    const PartCosts& costs = limit_.costs;
    for (rows_ = k + 1; rows_ <= most_rows(costs) && found == Found::nothing; ++rows_) {
      needed_ = limit_.most * k * costs.row * rows_;
      most_columns_ = columns_beside(costs, rows_);
      for (std::size_t place = 0; place < kMostClasses; ++place) {
        value_[place] =
            std::int64_t{sums[order_[place]]} * costs.full * rows_ - limit_.most * k * costs.column;
        gains_[place + 1] = gains_[place] + std::max<std::int64_t>(value_[place], 0);
      }
      for (int columns = 1; columns <= most_columns_; ++columns) {
        heavy_[static_cast<std::size_t>(columns)] = LargestExceed(
            rows_, limit_.most * costs.allowance(rows_, columns) / (std::int64_t{2} * costs.full));
      }
      found = search(0, 0, 0, {});
    }
    result.steps += steps_;
    if (found == Found::part) result.least = least_;
    return found;
  }

 private:
  // As numbers with the column in the last places, which are sorted faster.
  void sort(const WeightRow& sums) {
    std::array<int, kMostClasses> keys;
    for (std::size_t j = 0; j < kMostClasses; ++j) {
      keys[j] = sums[j] * static_cast<int>(kMostClasses) + static_cast<int>(j);
    }
    std::sort(keys.begin(), keys.end(), std::greater<>());
    for (std::size_t place = 0; place < kMostClasses; ++place) {
      order_[place] = static_cast<std::size_t>(keys[place]) % kMostClasses;
    }
  }

  // Tells whether the rows themselves are beyond the limit with their heaviest columns.
  bool of_rows(const WeightRow& sums, int k) {
    std::int64_t weight = 0;
    for (int columns = 1; columns <= columns_beside(limit_.costs, k); ++columns) {
      weight += sums[order_[static_cast<std::size_t>(columns) - 1]];
      least_ = least_limit(weight, k, columns);
      if (least_ > limit_.most) return true;
    }
    return false;
  }

  // With which a part of so much weight is not beyond it.
  std::int64_t least_limit(std::int64_t weight, int rows, int columns) const {
    return tiles(weight * 2 * limit_.costs.full, limit_.costs.allowance(rows, columns));
  }

  // All sets that add columns from `place` on to `count` others, which have `value` and these
  // `sums` of rows.
  ATTEST_VECTOR_CLONES Found search(std::size_t place, int count, std::int64_t value,
                                    const WeightRow& sums) {
    const int left = most_columns_ - count;
    if (left == 0) return Found::nothing;
    for (; place < kMostClasses; ++place) {
      // The next ones are the best, for columns come in descending order.
      const std::size_t end = std::min(place + static_cast<std::size_t>(left), kMostClasses);
      if (value + gains_[end] - gains_[place] <= needed_) return Found::nothing;
      if (++steps_ > most_steps_) return Found::too_much_work;
      WeightRow next = sums;
      add(next, columns_[order_[place]]);
      const std::int64_t now = value + value_[place];
      if (now > needed_ && heavy_[static_cast<std::size_t>(count) + 1](next)) {
        least_ = least_limit(sum_of_largest(next, rows_), rows_, count + 1);
        return Found::part;
      }
      const Found found = search(place + 1, count + 1, now, next);
      if (found != Found::nothing) return found;
    }
    return Found::nothing;
  }

  const WeightGrid& columns_;
  PartLimit limit_;
  int rows_ = 0, most_columns_ = 0;
  std::int64_t needed_ = 0, steps_ = 0, most_steps_ = 0, least_ = 0;
  std::array<std::size_t, kMostClasses> order_{};
  std::array<std::int64_t, kMostClasses> value_{};
  std::array<std::int64_t, kMostClasses + 1> gains_{};   // of the first columns together
  std::array<LargestExceed, kMostColumns + 1> heavy_{};  // by number of columns
};

// Sets of k rows, one more in each round, as above: kept are those whose b heaviest columns have so
// much, for some a and b. Sets for which the search through sets of columns takes long are left to
// the next round: the more rows, the fewer columns.
class RowSearch {
 public:
  RowSearch(const WeightGrid& rows, const WeightGrid& columns, PartLimit limit)
      : rows_(rows), columns_(columns, limit), limit_(limit) {}

  PartSearch run(std::int64_t most_steps) {
    PartSearch search;
    std::vector<Set> sets{0}, larger;
    for (int size = 1; size <= most_rows(limit_.costs); ++size) {
      larger.clear();
      for (const Set set : sets) {
        extend(set, size, larger);
        search.steps += static_cast<std::int64_t>(kMostClasses);
        if (search.steps > most_steps || larger.size() > kMostSets) return search;
      }
      std::sort(larger.begin(), larger.end());
      larger.erase(std::unique(larger.begin(), larger.end()), larger.end());
      sets.clear();
      for (const Set set : larger) {
        const ColumnSearch::Found found =
            columns_.run(sum_of(rows_, set), size, size < 3 ? 0 : kSteps, search);
        if (found == ColumnSearch::Found::part || search.steps > most_steps) return search;
        if (found == ColumnSearch::Found::too_much_work) sets.push_back(set);
      }
    }
    search.proved = sets.empty();
    return search;
  }

 private:
  // For the columns of one set of rows; of fewer than three there are too many.
  static constexpr std::int64_t kSteps = 1024;
  static constexpr std::size_t kMostSets = std::size_t{1} << 24;

  // No number of columns is beyond the limit if the excess over a threshold is at most `most`.
  struct Test {
    std::int16_t threshold;
    std::int64_t most;
  };

  // The sets with one row more that are kept.
  void extend(Set set, int size, std::vector<Set>& larger) {
    const WeightRow sums = sum_of(rows_, set);
    prepare(sums, size);
    for (std::size_t row = 0; row < kMostClasses; ++row) {
      const Set one = Set{1} << row;
      if ((set & one) != 0) continue;
      WeightRow next = sums;
      add(next, rows_[row]);
      if (kept(next)) larger.push_back(set | one);
    }
  }

  // b columns have at most excess(t) + t b; the best t is the least of the b largest sums, of which
  // those without the row that is added serve as a guess.
  void prepare(WeightRow sums, int size) {
    std::sort(sums.begin(), sums.end(), std::greater<>());
    tests_.clear();
    const PartCosts& costs = limit_.costs;
    for (int rows = most_rows(costs); rows >= size; --rows) {
      const std::int64_t columns = columns_beside(costs, rows);
      const std::int64_t each = limit_.most * size, unit = std::int64_t{rows} * costs.full;
      // Beyond the limit are b columns with more than each (row rows + column b)/unit.
      const std::int64_t threshold = std::max<std::int64_t>(
          tiles(each * costs.column, unit), sums[static_cast<std::size_t>(columns)]);
      const std::int64_t most =
          each * costs.row * rows - (threshold * unit - each * costs.column) * columns;
      tests_.push_back({static_cast<std::int16_t>(threshold), floor_of(most, unit)});
    }
  }

  static std::int64_t floor_of(std::int64_t value, std::int64_t unit) {
    return value >= 0 ? value / unit : -((-value + unit - 1) / unit);
  }

  bool kept(const WeightRow& sums) const {
    return std::any_of(tests_.begin(), tests_.end(),
                       [&](const Test& test) { return excess(sums, test.threshold) > test.most; });
  }

  const WeightGrid& rows_;
  ColumnSearch columns_;
  PartLimit limit_;
  std::vector<Test> tests_;  // of the most rows first
};

constexpr int kMostSummed = 16;  // rows or columns, in 16 bits

}  // namespace

bool can_search(const PartCosts& costs) {
  constexpr int kMostCost = 1 << 10;
  const auto fits = [](const PartCosts& one) {
    return one.row >= 1 && one.row <= kMostCost && one.column >= 1 && one.full >= 1 &&
           one.full <= kMostCost && one.beyond >= 0 && one.beyond <= kMostCost &&
           most_rows(one) >= 1 && most_rows(one) <= kMostSummed &&
           columns_beside(one, 1) <= kMostColumns && columns_beside(one, 4) <= kMostSummed;
  };
  return fits(costs) && fits(transposed(costs));
}

PartSearch prove_limit(const WeightGrid& grid, PartLimit limit, std::int64_t most_steps) {
  // A lane adds 8 sums; sets of columns are summed for three rows and more, beside one at least.
  constexpr std::int16_t kHeaviest = 255;
  static_assert(kMostSummed * kHeaviest * 8 <= std::numeric_limits<std::int16_t>::max());
  if (!can_search(limit.costs)) throw InternalError("parts of such costs");
  if (limit.most < 0 || limit.most > std::int64_t{1} << 32) throw InternalError("such a limit");
  for (const WeightRow& row : grid) {
    for (const std::int16_t weight : row) {
      if (weight < 0 || weight > kHeaviest) throw InternalError("a weight is out of range");
    }
  }
  // At most half of what a part costs is for its rows, or for its columns.
  const WeightGrid other = transposed(grid);
  const PartSearch by_rows = RowSearch(grid, other, limit).run(most_steps);
  if (!by_rows.proved) return by_rows;
  limit.costs = transposed(limit.costs);
  PartSearch search = RowSearch(other, grid, limit).run(most_steps - by_rows.steps);
  search.steps += by_rows.steps;
  return search;
}

}  // namespace attest::io
