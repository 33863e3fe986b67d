#pragma once

#include <cstdint>
#include <vector>

/// S = Q K^T by fast and by classical multiplication in a two-level memory that counts.
namespace attest::certify {

/// How blocks are multiplied.
enum class Multiplication : std::uint8_t { classical, strassen };

struct ProductWords {
  std::int64_t read = 0, written = 0, peak = 0;

  std::int64_t moved() const { return read + written; }
};

/// A product and what it moved. S is row-major, rows_q x rows_k; empty in a dry run.
struct CountedProduct {
  std::vector<double> S;
  ProductWords words;
};

/// Matrices, row-major; without values a dry run, which counts the same.
struct ProductTask {
  std::int64_t rows_q = 1, rows_k = 1, head_dim = 1;
  std::vector<double> Q, K;
};

/// Depth-first: a product whose operands and result fit in fast memory is formed there, any other
/// is split in halves. Strassen's seven products have their sums of blocks and their results in
/// slow memory, for they do not fit either; S ends in slow memory.
///
/// Requires: sizes that are powers of two, fast_words at least 3. Else throws InvalidProblem.
/// [certify/reproduce/claims/strassen_test "depth-first"]
/// Source:   Strassen 1969; Ballard, Demmel, Holtz, Schwartz 2012 (depth-first).
CountedProduct depth_first_product(const ProductTask& task, std::int64_t fast_words,
                                   Multiplication multiplication);

/// Tiles of `tile` rows of Q stay and tiles of `tile` rows of K pass by; S is formed tile by tile
/// in fast memory, where attention would use it, and is not written. Strassen works on what lies
/// there: the words that move are those of the classical product, only the peak is higher.
///
/// Requires: sizes and tile that are powers of two, tile at most both numbers of rows. Else throws
/// InvalidProblem.  [certify/reproduce/claims/strassen_test "in fast memory"]
CountedProduct resident_product(const ProductTask& task, std::int64_t tile,
                                Multiplication multiplication);

}  // namespace attest::certify
