#include "sparse/inputs/tile_words.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "sparse/inputs/sparse_products.hpp"

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

ProductWords words_by_tiles(const CsrMatrix& A, const CsrMatrix& B, std::int64_t least_side) {
  if (A.rows < 1 || B.rows < 1 || least_side < 1) {
    throw InvalidProblem(
        "sparse product: a matrix without a row, or tiles without a side; give "
        "one of each at least");
  }
  ProductWords found;
  found.nonzeros = A.nonzeros() + B.nonzeros();
  found.pairs = product_structure(A, B).nonzeros();
  for (const std::int64_t rows_a : sides(A.rows, least_side)) {
    for (const std::int64_t rows_b : sides(B.rows, least_side)) {
      found.nested.push_back(of(NestedProduct{rows_a, rows_b}.cost(A, B)));
      found.outer.push_back(of(OuterProduct{rows_a, rows_b}.cost(A, B)));
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
