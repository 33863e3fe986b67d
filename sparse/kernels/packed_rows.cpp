#include "sparse/kernels/packed_rows.hpp"

namespace attest::sparse {

namespace {

StoredRows stored(const attest_problem& problem, std::int64_t heads, const std::int32_t* ends,
                  std::int64_t of_entry) {
  return {heads, ends != nullptr ? ends[problem.batch] : problem.batch * of_entry, of_entry};
}

}  // namespace

StoredRows stored_queries(const attest_problem& problem) {
  return stored(problem, problem.num_heads_q, problem.mask.cu_seqlens_q, problem.seqlen_q);
}

StoredRows stored_keys(const attest_problem& problem) {
  return stored(problem, problem.num_heads_kv, problem.mask.cu_seqlens_k, problem.seqlen_k);
}

}  // namespace attest::sparse
