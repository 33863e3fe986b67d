#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/sparse_operands/csr_matrix.hpp"

/// Words of the two forms of one sparse product as functions of fast memory.
namespace attest::sparse {

/// Words that a schedule moves, and the fast memory it needs, with some tiles.
struct TileWords {
  std::int64_t words, peak;
};

/// Counts that the papers' orders depend on, and words that the schedules move with tiles of every
/// choice; the last choice is everything in one tile.
struct ProductWords {
  std::int64_t nonzeros = 0;      // of A and B
  std::int64_t pairs = 0;         // Z: entries of A B^T
  std::vector<TileWords> nested;  // NestedProduct, nnz^2 / M
  std::vector<TileWords> outer;   // OuterProduct, nnz sqrt(Z / M)
};

/// Sides of tiles to choose among: from `least` on, `to_an_octave` of them to a factor of two,
/// rounded; the last is the extent. Requires: all at least 1. Else throws InvalidProblem.
/// [sparse/inputs/words/tile_words_test "sides of tiles"]
std::vector<std::int64_t> tile_sides(std::int64_t extent, std::int64_t least, int to_an_octave);

/// By closed forms; sides of the blocks of OuterProduct are tile_sides(rows, least_side,
/// to_an_octave). Sides of blocks of NestedProduct begin with 1: words that pass by need no room.
///
/// Requires: rows in both, least_side >= 1. Else throws InvalidProblem.
/// [sparse/inputs/words/tile_words_test "counted with some tiles"]
ProductWords words_by_tiles(const CsrMatrix& A, const CsrMatrix& B, std::int64_t least_side,
                            int to_an_octave = 1);

/// The fewest words of tiles that fit; nothing where none do.
/// [sparse/inputs/words/tile_words_test "fewest of what fits"]
std::optional<std::int64_t> fewest_words(const std::vector<TileWords>& choices,
                                         std::int64_t fast_words);

}  // namespace attest::sparse
