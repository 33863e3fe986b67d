#include "schedules/walks/lists/row_order.hpp"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

namespace attest::schedules {
namespace {

std::size_t at(std::int64_t value) { return static_cast<std::size_t>(value); }

constexpr std::int64_t kWordBits = 64;
using Bits = std::vector<std::uint64_t>;

// Pairs by what every row sees, and by the rows that see it: keys and queries, or queries and keys.
// Also as bits, row by row: bits of dense rows are faster to count.
struct Pairs {
  std::vector<std::vector<std::int64_t>> seen, rows;
  std::vector<std::int64_t> seen_by;  // how much every row sees
  std::int64_t row_words;
  Bits bits;

  Pairs(const ScoreRule& rule, std::int64_t q, std::int64_t k, Stay of) : seen(at(q)), rows(at(k)) {
    const attest_problem& problem = *rule.problem;
    for (std::int64_t i = 0; i < q; ++i) {
      const std::uint8_t* row = problem.mask.boolean + i * problem.seqlen_k;
      const KeySpan span = visible_keys(problem, rule.batch, i);
      for (std::int64_t j = span.begin; j < span.end; ++j) {
        if (row[j] == 0) continue;
        seen[at(i)].push_back(j);
        rows[at(j)].push_back(i);
      }
    }
    if (of == Stay::keys) seen.swap(rows);
    for (const auto& row : seen) seen_by.push_back(static_cast<std::int64_t>(row.size()));
    row_words = io::tiles(static_cast<std::int64_t>(rows.size()), kWordBits);
    bits.resize(seen.size() * at(row_words));
    for (std::size_t row = 0; row < seen.size(); ++row) {
      for (const std::int64_t one : seen[row]) {
        bits[row * at(row_words) + at(one / kWordBits)] |= std::uint64_t{1} << (one % kWordBits);
      }
    }
  }
};

// One group as it grows.
class Group {
 public:
  explicit Group(const Pairs& pairs)
      : pairs_(pairs), taken_(at(pairs.row_words)), shared_(pairs.seen.size()) {}

  // Takes a row; tells whether that changes what any row shares.
  bool take(std::int64_t row) {
    // By the bits of all rows, or by the rows that see what is new: whichever looks at less.
    std::vector<std::int64_t> words;
    std::size_t pairs = 0;
    Bits added(taken_.size());
    const std::uint64_t* bits = &pairs_.bits[at(row * pairs_.row_words)];
    for (std::size_t word = 0; word < added.size(); ++word) {
      added[word] = bits[word] & ~taken_[word];
      if (added[word] == 0) continue;
      taken_[word] |= added[word];
      words.push_back(static_cast<std::int64_t>(word));
    }
    if (words.empty()) return false;
    const auto is_added = [&](std::int64_t one) {
      return ((added[at(one / kWordBits)] >> (one % kWordBits)) & 1) != 0;
    };
    for (const std::int64_t one : pairs_.seen[at(row)]) {
      if (is_added(one)) pairs += pairs_.rows[at(one)].size();
    }
    if (pairs > words.size() * shared_.size()) {
      for (std::size_t other = 0; other < shared_.size(); ++other) {
        const std::uint64_t* of_other = &pairs_.bits[other * added.size()];
        for (const std::int64_t word : words) {
          shared_[other] += std::popcount(of_other[word] & added[at(word)]);
        }
      }
      return true;
    }
    for (const std::int64_t one : pairs_.seen[at(row)]) {
      if (!is_added(one)) continue;
      for (const std::int64_t other : pairs_.rows[at(one)]) ++shared_[at(other)];
    }
    return true;
  }

  // Tells whether `a` is rather in this group than `b`; of equals the first.
  bool before(std::int64_t a, std::int64_t b) const {
    if (shared_[at(a)] != shared_[at(b)]) return shared_[at(a)] > shared_[at(b)];
    if (pairs_.seen_by[at(a)] != pairs_.seen_by[at(b)]) {
      return pairs_.seen_by[at(a)] < pairs_.seen_by[at(b)];
    }
    return a < b;
  }

 private:
  const Pairs& pairs_;
  Bits taken_;                        // what a row of the group sees
  std::vector<std::int64_t> shared_;  // of every row, how much of what it sees is taken
};

}  // namespace

RowOrder RowOrder::grouped(const ScoreRule& rule, std::int64_t q, std::int64_t k,
                           std::int64_t block, Stay of) {
  std::vector<std::int64_t> left(at(of == Stay::queries ? q : k));
  std::iota(left.begin(), left.end(), 0);
  if (rule.problem->mask.boolean == nullptr || block == 1) return RowOrder(std::move(left));
  const Pairs pairs(rule, q, k, of);
  std::vector<std::int64_t> order;
  while (!left.empty()) {
    Group group(pairs);
    const auto before = [&](std::int64_t a, std::int64_t b) { return group.before(a, b); };
    std::vector<std::int64_t> next;  // as long as what rows share does not change, the last first
    next.push_back(left.front());
    for (std::int64_t room = block; room > 0; --room) {
      const std::int64_t row = next.back();
      next.pop_back();
      order.push_back(row);
      left.erase(std::lower_bound(left.begin(), left.end(), row));
      if (room == 1 || left.empty()) break;  // the last one chooses none
      if (group.take(row)) {
        next.assign(1, *std::min_element(left.begin(), left.end(), before));
      } else if (next.empty()) {
        next.resize(std::min(left.size(), at(room - 1)));
        std::partial_sort_copy(left.begin(), left.end(), next.begin(), next.end(), before);
        std::reverse(next.begin(), next.end());
      }
    }
  }
  return RowOrder(std::move(order));
}

}  // namespace attest::schedules
