#include "schedules/walks/lists/nm_metadata.hpp"

#include <bit>
#include <numeric>

#include "io/schedule/schedule.hpp"

namespace attest::schedules {
namespace {

constexpr std::int64_t kWordBits = 32;

// Counts the keys, of keys begin .. end-1, that one query sees.
std::int64_t visible(const attest_problem& problem, const Batch& batch, std::int64_t query,
                     std::int64_t begin, std::int64_t end) {
  const KeySpan span = visible_keys(problem, batch, query);
  const std::int64_t first = std::max(begin, span.begin), last = std::min(end, span.end);
  if (first >= last) return 0;
  const std::uint8_t* row = problem.mask.boolean + query * problem.seqlen_k;
  return std::count(row + first, row + last, std::uint8_t{1});
}

}  // namespace

NmShape nm_shape_of(const attest_problem& problem) {
  if (problem.mask.nm != nullptr) return {problem.mask.nm->kept, problem.mask.nm->group};
  if (problem.seqlen_q == 0 || problem.seqlen_k == 0 || problem.batch == 0) return {};
  throw io::NotForProblem(
      "mask: no N:M pattern, but N:M schedules read the offsets of one; give one, as in "
      "mask=nm_2_4_7, or choose csr_gather, backward csr_two_pass");
}

NmLayout::NmLayout(const ScoreRule& rule, std::int64_t q, std::int64_t k, NmShape shape,
                   std::int64_t block_q)
    : rule_(rule),
      q_(q),
      k_(k),
      shape_(shape),
      block_q_(std::min(block_q, std::max<std::int64_t>(q, 1))) {}

NmMetadata::NmMetadata(const NmLayout& layout) : NmLayout(layout) {
  words_.resize(
      static_cast<std::size_t>(io::tiles(q_, block_q_) * groups() * group_words(block_q_)));
}

std::int64_t NmLayout::group_words(std::int64_t queries) const {
  const auto bits =
      static_cast<std::int64_t>(std::bit_width(static_cast<std::uint64_t>(shape_.group - 1)));
  return io::tiles(queries * shape_.kept * bits, kWordBits);
}

std::vector<std::uint8_t> NmLayout::seen_by(io::Range queries) const {
  const attest_problem& problem = *rule_.problem;
  std::vector<std::uint8_t> seen(static_cast<std::size_t>(k_));
  for (std::int64_t i = queries.begin; i < queries.end; ++i) {
    const KeySpan span = visible_keys(problem, rule_.batch, i);
    const std::uint8_t* row = problem.mask.boolean + i * problem.seqlen_k;
    for (std::int64_t j = span.begin; j < span.end; ++j) {
      if (row[j] != 0) seen[static_cast<std::size_t>(j)] = 1;
    }
  }
  return seen;
}

// Blocks that begin at the same place of their groups are alike.
std::vector<NmLayout::Blocks> NmLayout::blocks_of(std::int64_t extent, std::int64_t block,
                                                  std::int64_t group) const {
  const std::int64_t whole = extent / block, last = whole * block;
  const std::int64_t period = rule_.problem->mask.boolean == nullptr
                                  ? group / std::gcd(block, group)
                                  : std::max<std::int64_t>(whole, 1);
  std::vector<Blocks> blocks;
  for (std::int64_t n = 0; n < std::min(period, whole); ++n) {
    blocks.push_back({{n * block, (n + 1) * block}, io::tiles(whole - n, period)});
  }
  if (last < extent) blocks.push_back({{last, extent}, 1});
  return blocks;
}

std::vector<NmLayout::Blocks> NmLayout::query_blocks() const { return blocks_of(q_, block_q_, 1); }

std::vector<NmLayout::Blocks> NmLayout::key_blocks(std::int64_t block_k) const {
  return blocks_of(k_, std::min(block_k, std::max<std::int64_t>(k_, 1)), shape_.group);
}

bool NmLayout::sees(std::int64_t query, io::Range keys) const {
  const attest_problem& problem = *rule_.problem;
  return problem.mask.boolean == nullptr ||
         visible(problem, rule_.batch, query, keys.begin, keys.end) > 0;
}

std::int64_t NmLayout::queries_seeing(io::Range keys, io::Range queries) const {
  if (rule_.problem->mask.boolean == nullptr) return queries.count();
  std::int64_t count = 0;
  for (std::int64_t i = queries.begin; i < queries.end; ++i) count += sees(i, keys) ? 1 : 0;
  return count;
}

std::int64_t NmLayout::keys_seen(io::Range queries) const {
  if (rule_.problem->mask.boolean == nullptr) return k_;
  const std::vector<std::uint8_t> seen = seen_by(queries);
  return std::count(seen.begin(), seen.end(), std::uint8_t{1});
}

io::SlowMatrix NmMetadata::matrix() const {
  return {
      "metadata", static_cast<std::int64_t>(words_.size()), 1, DType::f32, {words_.data(), 1, 1}};
}

}  // namespace attest::schedules
