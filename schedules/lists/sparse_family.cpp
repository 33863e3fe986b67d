#include "schedules/lists/sparse_family.hpp"

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

namespace attest::schedules {

void require_pairs(const char* schedule, const char* dense, const attest_problem& problem) {
  // A mask of no pairs at all has no first element.
  const bool nothing = problem.seqlen_q == 0 || problem.seqlen_k == 0;
  if (problem.mask.boolean != nullptr || nothing) return;
  if (has_pattern(problem)) {
    if (problem.seqlen_q <= kMostListedPairs / problem.seqlen_k) return;
    throw io::NotForProblem("mask: lists of a band are made up to 2^24 pairs, and here are " +
                            std::to_string(problem.seqlen_q) + " x " +
                            std::to_string(problem.seqlen_k) + "; choose " + dense);
  }
  throw io::NotForProblem("mask: no pattern of pairs, but " + std::string(schedule) +
                          " reads the lists of one; give a sparsity pattern, as in "
                          "mask=block_64_10_7, or choose " +
                          dense);
}

PatternGrid grid_of(const attest_problem& problem) {
  if (problem.mask.boolean == nullptr) return {};
  const std::int64_t q = problem.seqlen_q, k = problem.seqlen_k;
  std::vector<std::uint8_t> changes(static_cast<std::size_t>(k));  // between a key and the last
  PatternGrid grid{0, 0};
  for (std::int64_t i = 0; i < q; ++i) {
    const std::uint8_t* row = problem.mask.boolean + i * k;
    if (i > 0 && std::equal(row, row + k, row - k)) continue;
    grid.queries = std::gcd(grid.queries, i);
    for (std::int64_t j = 1; j < k; ++j) {
      if (row[j] != row[j - 1]) changes[static_cast<std::size_t>(j)] = 1;
    }
  }
  for (std::int64_t j = 1; j < k; ++j) {
    if (changes[static_cast<std::size_t>(j)] != 0) grid.keys = std::gcd(grid.keys, j);
  }
  // All alike: one block.
  return {grid.queries == 0 ? std::max<std::int64_t>(q, 1) : grid.queries,
          grid.keys == 0 ? std::max<std::int64_t>(k, 1) : grid.keys};
}

std::int64_t aligned_tile(std::int64_t tile, std::int64_t block) {
  if (tile >= block) return tile / block * block;
  while (block % tile != 0) --tile;
  return tile;
}

}  // namespace attest::schedules
