#include "sparse/schedules/sparse_family.hpp"

#include <string>

namespace attest::sparse {

void require_pairs(const char* schedule, const char* dense, const attest_problem& problem) {
  // A mask of no pairs at all has no first element.
  const bool nothing = problem.seqlen_q == 0 || problem.seqlen_k == 0;
  if (problem.mask.boolean != nullptr || nothing) return;
  throw io::NotForProblem("mask: no pattern of pairs, but " + std::string(schedule) +
                          " reads the lists of one; give a sparsity pattern, as in "
                          "mask=block_64_10_7, or choose " +
                          dense);
}

}  // namespace attest::sparse
