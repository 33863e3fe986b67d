#include "sparse/kernels/listed_mask.hpp"

namespace attest::sparse {
namespace {

// For every line of `lines` those of `others` for which visible(line, other) holds.
template <class Lists, class Visible>
void fill(Lists& lists, std::int64_t count, std::int64_t others, const Visible& visible) {
  lists.offsets.assign(1, 0);
  for (std::int64_t line = 0; line < count; ++line) {
    for (std::int64_t other = 0; other < others; ++other) {
      if (visible(line, other)) lists.indices.push_back(static_cast<std::int32_t>(other));
    }
    lists.offsets.push_back(static_cast<std::int64_t>(lists.indices.size()));
  }
}

// Never null, even of no indices.
template <class Lists>
attest_lists view(Lists& lists) {
  lists.indices.reserve(1);
  return {lists.offsets.data(), lists.indices.data()};
}

}  // namespace

ListedMask::ListedMask(const attest_problem& problem) : problem_(problem) {
  const std::uint8_t* const boolean = problem.mask.boolean;
  if (boolean == nullptr) return;
  const std::int64_t q = problem.seqlen_q, k = problem.seqlen_k;
  fill(by_query_, q, k, [&](std::int64_t i, std::int64_t j) { return boolean[i * k + j] != 0; });
  fill(by_key_, k, q, [&](std::int64_t j, std::int64_t i) { return boolean[i * k + j] != 0; });
  csr_ = {sizeof csr_, view(by_query_), view(by_key_)};
  problem_.mask.boolean = nullptr;
  problem_.mask.csr = &csr_;
}

}  // namespace attest::sparse
