#include "sparse/schedules/row_order.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace attest::sparse {
namespace {

std::size_t at(std::int64_t value) { return static_cast<std::size_t>(value); }

// Visible keys of every query, and queries of every key.
struct Pairs {
  std::vector<std::vector<std::int64_t>> keys, queries;

  Pairs(const cpu::ScoreRule& rule, std::int64_t q, std::int64_t k) : keys(at(q)), queries(at(k)) {
    const attest_problem& problem = *rule.problem;
    for (std::int64_t i = 0; i < q; ++i) {
      const std::uint8_t* row = problem.mask.boolean + i * problem.seqlen_k;
      const cpu::KeySpan span = visible_keys(problem, rule.batch, i);
      for (std::int64_t j = span.begin; j < span.end; ++j) {
        if (row[j] == 0) continue;
        keys[at(i)].push_back(j);
        queries[at(j)].push_back(i);
      }
    }
  }
};

// One group as it grows.
class Group {
 public:
  explicit Group(const Pairs& pairs)
      : pairs_(pairs), taken_(pairs.queries.size()), shared_(pairs.keys.size()) {}

  void take(std::int64_t query) {
    for (const std::int64_t key : pairs_.keys[at(query)]) {
      if (taken_[at(key)] != 0) continue;
      taken_[at(key)] = 1;
      for (const std::int64_t other : pairs_.queries[at(key)]) ++shared_[at(other)];
    }
  }

  // Larger: rather in this group.
  auto merit(std::int64_t query) const {
    const std::int64_t shared = shared_[at(query)];
    const auto keys = static_cast<std::int64_t>(pairs_.keys[at(query)].size());
    return std::tuple(shared, shared - keys, -query);
  }

 private:
  const Pairs& pairs_;
  std::vector<std::uint8_t> taken_;   // keys
  std::vector<std::int64_t> shared_;  // of every query, how many of its keys are taken
};

}  // namespace

RowOrder RowOrder::grouped(const cpu::ScoreRule& rule, std::int64_t q, std::int64_t k,
                           std::int64_t block) {
  std::vector<std::int64_t> left(at(q));
  std::iota(left.begin(), left.end(), 0);
  if (rule.problem->mask.boolean == nullptr) return RowOrder(std::move(left));
  const Pairs pairs(rule, q, k);
  std::vector<std::int64_t> order;
  while (!left.empty()) {
    Group group(pairs);
    auto next = left.begin();
    for (std::int64_t room = block; room > 0 && !left.empty(); --room) {
      group.take(*next);
      order.push_back(*next);
      left.erase(next);
      next = std::max_element(left.begin(), left.end(), [&](std::int64_t a, std::int64_t b) {
        return group.merit(a) < group.merit(b);
      });
    }
  }
  return RowOrder(std::move(order));
}

}  // namespace attest::sparse
