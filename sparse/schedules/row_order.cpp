#include "sparse/schedules/row_order.hpp"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

namespace attest::sparse {
namespace {

std::size_t at(std::int64_t value) { return static_cast<std::size_t>(value); }

constexpr std::int64_t kWordBits = 64;
using Bits = std::vector<std::uint64_t>;

// What every row sees, and the rows that see it: keys and queries, or queries and keys. Also as
// bits, row by row: of dense rows they are faster to count.
struct Pairs {
  std::vector<std::vector<std::int64_t>> seen, rows;
  std::int64_t row_words;
  Bits bits;

  Pairs(const cpu::ScoreRule& rule, std::int64_t q, std::int64_t k, ListsOf of)
      : seen(at(q)), rows(at(k)) {
    const attest_problem& problem = *rule.problem;
    for (std::int64_t i = 0; i < q; ++i) {
      const std::uint8_t* row = problem.mask.boolean + i * problem.seqlen_k;
      const cpu::KeySpan span = visible_keys(problem, rule.batch, i);
      for (std::int64_t j = span.begin; j < span.end; ++j) {
        if (row[j] == 0) continue;
        seen[at(i)].push_back(j);
        rows[at(j)].push_back(i);
      }
    }
    if (of == ListsOf::keys) seen.swap(rows);
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

  void take(std::int64_t row) {
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
    if (words.empty()) return;
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
      return;
    }
    for (const std::int64_t one : pairs_.seen[at(row)]) {
      if (!is_added(one)) continue;
      for (const std::int64_t other : pairs_.rows[at(one)]) ++shared_[at(other)];
    }
  }

  // Larger: rather in this group.
  auto merit(std::int64_t row) const {
    const std::int64_t shared = shared_[at(row)];
    return std::pair(shared, shared - static_cast<std::int64_t>(pairs_.seen[at(row)].size()));
  }

 private:
  const Pairs& pairs_;
  Bits taken_;                        // what a row of the group sees
  std::vector<std::int64_t> shared_;  // of every row, how much of what it sees is taken
};

}  // namespace

RowOrder RowOrder::grouped(const cpu::ScoreRule& rule, std::int64_t q, std::int64_t k,
                           std::int64_t block, ListsOf of) {
  std::vector<std::int64_t> left(at(of == ListsOf::queries ? q : k));
  std::iota(left.begin(), left.end(), 0);
  if (rule.problem->mask.boolean == nullptr || block == 1) return RowOrder(std::move(left));
  const Pairs pairs(rule, q, k, of);
  std::vector<std::int64_t> order;
  while (!left.empty()) {
    Group group(pairs);
    auto next = left.begin();
    for (std::int64_t room = block; room > 0 && !left.empty(); --room) {
      order.push_back(*next);
      if (room > 1) group.take(*next);  // the last one chooses none
      left.erase(next);
      // Of equals the first.
      next = std::max_element(left.begin(), left.end(), [&](std::int64_t a, std::int64_t b) {
        return group.merit(a) < group.merit(b);
      });
    }
  }
  return RowOrder(std::move(order));
}

}  // namespace attest::sparse
