#include "schedules/walks/mask_hull.hpp"

#include <algorithm>
#include <cstring>

namespace attest::schedules {
namespace {

// From the first visible key of a query to the last, none if it sees none.
io::Range visible_range(const ScoreRule& rule, std::int64_t query) {
  const attest_problem& problem = *rule.problem;
  const KeySpan span = visible_keys(problem, rule.batch, query);
  const std::uint8_t* row = problem.mask.boolean + query * problem.seqlen_k;
  const auto count = static_cast<std::size_t>(span.end - span.begin);
  const void* first = std::memchr(row + span.begin, 1, count);
  if (first == nullptr) return {};
  const void* last = memrchr(row + span.begin, 1, count);
  return {static_cast<const std::uint8_t*>(first) - row,
          static_cast<const std::uint8_t*>(last) - row + 1};
}

// Bands around the ranges, in which queries between others see a key of these.
std::vector<io::Range> around(std::vector<io::Range> ranges) {
  const auto sees = [](const io::Range& range) { return range.count() > 0; };
  const auto first = std::find_if(ranges.begin(), ranges.end(), sees);
  if (first == ranges.end()) return ranges;
  const auto last = std::find_if(ranges.rbegin(), ranges.rend(), sees).base();
  std::int64_t begin = first->begin, end = first->end;
  for (auto range = first; range != last; ++range) {
    end = std::max(end, range->end);
    if (!sees(*range)) range->begin = end - 1;
    range->end = end;
  }
  for (auto range = last; range != first;) {
    --range;
    // The band reaches the bands of the queries after it.
    if (range + 1 != last) {
      range->begin = std::min(range->begin, (range + 1)->begin);
      range->end = std::max(range->end, (range + 1)->begin);
    }
    begin = range->begin;
  }
  std::fill(ranges.begin(), first, io::Range{begin, begin});
  std::fill(last, ranges.end(), io::Range{end, end});
  return ranges;
}

}  // namespace

MaskHull::MaskHull(std::vector<io::Range> bands) : bands_(std::move(bands)), begins_{0}, ends_{0} {
  for (const io::Range& band : bands_) {
    begins_.push_back(begins_.back() + band.begin);
    ends_.push_back(ends_.back() + band.end);
    most_keys_ = std::max(most_keys_, band.count());
    const auto query = static_cast<std::int64_t>(begins_.size()) - 2;
    if (band.count() == 0) continue;
    seeing_ = {seeing_.count() > 0 ? seeing_.begin : query, query + 1};
  }
}

std::shared_ptr<const MaskHull> MaskHull::of(const ScoreRule& rule) {
  const attest_problem& problem = *rule.problem;
  const std::int64_t queries = rule.batch.q_length;
  const io::Words pairs = io::Words(queries) * rule.batch.keys;
  if (problem.mask.boolean == nullptr || pairs > kMostListedPairs) return nullptr;
  std::vector<io::Range> ranges;
  for (std::int64_t i = 0; i < queries; ++i) ranges.push_back(visible_range(rule, i));
  MaskHull hull(around(std::move(ranges)));
  const io::Range all{0, queries};
  if (4 * (hull.ends(all) - hull.begins(all)).value() > 3 * pairs.value()) return nullptr;
  return std::make_shared<const MaskHull>(std::move(hull));
}

PreparedHull::PreparedHull(const attest_problem& problem)
    : mask_(problem.mask.boolean),
      batch_(batch_of(problem, 0)),
      hull_(MaskHull::of({&problem, batch_, 0})) {}

std::shared_ptr<const MaskHull> PreparedHull::of(const ScoreRule& rule) const {
  const bool alike = mask_ != nullptr && rule.problem->mask.boolean == mask_ &&
                     rule.batch.q_length == batch_.q_length && rule.batch.keys == batch_.keys &&
                     rule.batch.shift == batch_.shift;
  return alike ? hull_ : MaskHull::of(rule);
}

}  // namespace attest::schedules
