#include "sparse/inputs/words/tile_words.hpp"

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "sparse/inputs/schedules/sparse_products.hpp"

namespace attest::sparse {
namespace {

TileWords of(const io::Traffic& traffic) {
  return {(traffic.reads.words + traffic.writes.words).value(), traffic.peak.words.value()};
}

}  // namespace

std::vector<std::int64_t> tile_sides(std::int64_t extent, std::int64_t least, int to_an_octave) {
  if (extent < 1 || least < 1 || to_an_octave < 1) {
    throw InvalidProblem(
        "sparse product: a matrix without a row, or tiles without a side; give one of each at "
        "least");
  }
  std::vector<std::int64_t> sides;
  for (int step = 0;; ++step) {
    const double factor = std::exp2(static_cast<double>(step) / to_an_octave);
    const std::int64_t side = std::llround(static_cast<double>(least) * factor);
    if (side >= extent) break;
    if (sides.empty() || side > sides.back()) sides.push_back(side);
  }
  sides.push_back(extent);
  return sides;
}

ProductWords words_by_tiles(const CsrMatrix& A, const CsrMatrix& B, std::int64_t least_side,
                            int to_an_octave) {
  const EntrySums structure(product_structure(A, B));
  ProductWords found;
  found.nonzeros = A.nonzeros() + B.nonzeros();
  found.pairs = structure.all();
  const auto each = [&](std::int64_t least, const auto& visit) {
    for (const std::int64_t rows_a : tile_sides(A.rows, least, to_an_octave)) {
      for (const std::int64_t rows_b : tile_sides(B.rows, least, to_an_octave)) {
        visit(rows_a, rows_b);
      }
    }
  };
  each(1, [&](std::int64_t rows_a, std::int64_t rows_b) {
    found.nested.push_back(of(NestedProduct{rows_a, rows_b}.cost(A, B, structure)));
  });
  each(least_side, [&](std::int64_t rows_a, std::int64_t rows_b) {
    found.outer.push_back(of(OuterProduct{rows_a, rows_b}.cost(A, B, structure)));
  });
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
