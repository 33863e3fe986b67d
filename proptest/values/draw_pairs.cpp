#include "proptest/values/draw_pairs.hpp"

#include "core/mask/sparsity/sparsity_pattern.hpp"
#include "proptest/values/draws.hpp"

namespace attest::proptest {

bool claims_lists(const attest_description& description) {
  return (description.features & (ATTEST_BLOCK_MASK | ATTEST_CSR_MASK | ATTEST_NM_MASK)) != 0;
}

std::string draw_pairs(Rng& rng, const attest_description& description, const Problem& problem) {
  const std::int64_t often = claims_lists(description) ? 80 : 50;
  if (chance(rng, often)) {
    return SparsityPattern::draw(rng, problem.seqlen_q, problem.seqlen_k);
  }
  const std::int64_t percent = rng.between(20, 95), seed = rng.between(0, 1000);
  return "random_" + std::to_string(percent) + "_" + std::to_string(seed);
}

}  // namespace attest::proptest
