#include "sparse/inputs/tile_words.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "sparse/inputs/lower_bounds.hpp"
#include "sparse/inputs/sparse_flash.hpp"
#include "sparse/inputs/stored_support.hpp"

namespace attest::sparse {
namespace {

std::vector<std::int64_t> sides(std::int64_t extent, std::int64_t least) {
  std::vector<std::int64_t> all;
  for (std::int64_t side = least; side < extent; side *= 2) all.push_back(side);
  all.push_back(extent);
  return all;
}

TileWords of(const io::Traffic& traffic) {
  return {(traffic.reads.words + traffic.writes.words).value(), traffic.peak.words.value()};
}

}  // namespace

SparseAttentionWords words_by_tiles(const SparseOperands& operands, std::int64_t least_side) {
  const Work work = work_of(operands);
  const std::int64_t q = operands.Q.rows, k = operands.K.rows, dv = operands.V.columns;
  if (q < 1 || dv < 1 || least_side < 1) {
    throw InvalidProblem(
        "sparse attention: no query, no column of V or no tile side; give one of "
        "each at least");
  }
  SparseAttentionWords found;
  found.nonzeros = work.nonzeros;
  found.pairs = work.pairs;
  for (const std::int64_t block_q : sides(q, least_side)) {
    for (const std::int64_t block_k : sides(k, least_side)) {
      found.flash.push_back(of(SparseFlash{block_q, block_k}.cost(operands)));
      for (const std::int64_t block_v : sides(dv, least_side)) {
        found.stored.push_back(of(StoredSupport{block_q, block_k, block_v}.cost(operands)));
      }
    }
  }
  return found;
}

std::optional<std::int64_t> fewest_words(const std::vector<TileWords>& choices,
                                         std::int64_t fast_words) {
  std::optional<std::int64_t> fewest;
  for (const TileWords& choice : choices) {
    if (choice.peak <= fast_words) fewest = std::min(fewest.value_or(choice.words), choice.words);
  }
  return fewest;
}

}  // namespace attest::sparse
