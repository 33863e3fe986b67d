#include "sparse/kernels/packed_rows.hpp"

namespace attest::sparse {

std::int64_t stored_queries(const attest_problem& problem) {
  const std::int32_t* const ends = problem.mask.cu_seqlens_q;
  return ends != nullptr ? ends[problem.batch] : problem.batch * problem.seqlen_q;
}

std::int64_t stored_keys(const attest_problem& problem) {
  const std::int32_t* const ends = problem.mask.cu_seqlens_k;
  return ends != nullptr ? ends[problem.batch] : problem.batch * problem.seqlen_k;
}

}  // namespace attest::sparse
