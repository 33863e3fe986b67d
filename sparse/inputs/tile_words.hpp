#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/sparse_operands.hpp"

/// Words of the two forms of sparse attention as functions of fast memory.
namespace attest::sparse {

/// What a schedule moves, and the fast memory it needs, with some tiles.
struct TileWords {
  std::int64_t words, peak;
};

/// What the papers' orders depend on, and what the schedules move with tiles of every choice.
struct SparseAttentionWords {
  std::int64_t nonzeros = 0;      // of Q, K and V
  std::int64_t pairs = 0;         // Z: pairs of the support of Q K^T
  std::vector<TileWords> flash;   // SparseFlash, nnz^2 / M
  std::vector<TileWords> stored;  // StoredSupport, nnz sqrt(Z / M)
};

/// By closed forms; sides of tiles are powers of two times `least_side`, or the whole extent.
///
/// Requires: valid operands with queries and columns of V, least_side >= 1. Else throws
/// InvalidProblem.  [sparse/inputs/tile_words_test "counted with some tiles"]
SparseAttentionWords words_by_tiles(const SparseOperands& operands, std::int64_t least_side);

/// The fewest words of tiles that fit; nothing where none do.
/// [sparse/inputs/tile_words_test "fewest of what fits"]
std::optional<std::int64_t> fewest_words(const std::vector<TileWords>& choices,
                                         std::int64_t fast_words);

}  // namespace attest::sparse
