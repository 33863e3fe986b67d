#include "core/testing/paged_call.hpp"

#include "core/features/pages.hpp"

namespace attest::testing {

Problem without_pages(Problem problem) {
  problem.paged_kv = {};
  return problem;
}

void take_values(const Call& paged, Call& in_order) {
  const Problem& problem = paged.problem;
  const TensorView& Q = in_order.Q.view();
  for_each_element(Q, [&](auto... index) { Q.set(paged.Q.view()(index...), index...); });
  const attest_paged_kv& pages = *paged.form.get()->paged_kv;
  std::int64_t b = 0;
  for (const Sequence& sequence : problem.sequences()) {
    for (std::int64_t j = 0; j < sequence.visible_keys; ++j) {
      const PagedKey at = place_of_key(pages, b, j);
      for (const auto tensor : {&Call::K, &Call::V}) {
        const TensorView &to = (in_order.*tensor).view(), &from = (paged.*tensor).view();
        for (std::int64_t h = 0; h < to.extent(2); ++h) {
          for (std::int64_t c = 0; c < to.extent(3); ++c) {
            to.set(from(at.page, at.slot, h, c), sequence.tensor_batch, sequence.k_begin + j, h, c);
          }
        }
      }
    }
    ++b;
  }
}

}  // namespace attest::testing
