#include "sparse/kernels/lists/pair_lists.hpp"

#include <algorithm>

namespace attest::sparse {
namespace {

// Rows begin .. end-1 of one line, or of all rows without a list.
RowList cut(const attest_lists* lists, std::int64_t line, std::int64_t begin, std::int64_t end) {
  if (lists == nullptr) return {nullptr, begin, end - begin};
  const std::int32_t* const first = lists->indices + lists->offsets[line];
  const std::int32_t* const last = lists->indices + lists->offsets[line + 1];
  const std::int32_t* const from = std::lower_bound(first, last, begin);
  const std::int32_t* const to = std::lower_bound(from, last, end);
  return {from, 0, to - from};
}

// The first query for which `reached` holds; it holds for all later ones.
template <class Predicate>
std::int64_t first_query_where(std::int64_t count, const Predicate& reached) {
  std::int64_t low = 0, high = count;
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    if (reached(middle)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

}  // namespace

RowList keys_of(const attest_problem& problem, const cpu::Batch& batch, std::int64_t i) {
  const attest_csr_mask* const mask = problem.mask.csr;
  const cpu::KeySpan span = cpu::visible_keys(problem, batch, i);
  return cut(mask != nullptr ? &mask->by_query : nullptr, i, span.begin, span.end);
}

RowList queries_of(const attest_problem& problem, const cpu::Batch& batch, std::int64_t j) {
  const attest_csr_mask* const mask = problem.mask.csr;
  // Both ends of the band grow with the query.
  const std::int64_t begin = first_query_where(
      batch.q_length, [&](std::int64_t i) { return cpu::visible_keys(problem, batch, i).end > j; });
  const std::int64_t end = first_query_where(batch.q_length, [&](std::int64_t i) {
    return cpu::visible_keys(problem, batch, i).begin > j;
  });
  return cut(mask != nullptr ? &mask->by_key : nullptr, j, begin, std::max(begin, end));
}

}  // namespace attest::sparse
