#include "sparse/kernels/lists/listed_mask.hpp"

#include <cstdint>

namespace attest::sparse {

ListedMask::ListedMask(const attest_problem& problem) : problem_(problem) {
  const std::uint8_t* const boolean = problem.mask.boolean;
  if (boolean == nullptr) return;
  const std::int64_t q = problem.seqlen_q, k = problem.seqlen_k;
  for (std::int64_t i = 0; i < q; ++i) {
    for (std::int64_t j = 0; j < k; ++j) {
      if (boolean[i * k + j] != 0) by_query_.indices.push_back(static_cast<std::int32_t>(j));
    }
    by_query_.end_list();
  }
  by_key_ = transposed(by_query_, k);
  csr_ = {sizeof csr_, by_query_.view(), by_key_.view()};
  problem_.mask.boolean = nullptr;
  problem_.mask.csr = &csr_;
}

}  // namespace attest::sparse
