#pragma once

#include <array>

#include "io/bounds/weights/pair_density.hpp"

/// Work that segments can do where the multiply-adds that form scores count as well as those into
/// O: docs/theory/bounds/patterns.md, "Scores counted".
namespace attest::io {

/// Score weights that bounds try beside 0: good where full parts have about d_k pairs to a row or
/// key, and where they have few.
inline constexpr std::array kScoreWeights{0.125, 0.375};

/// A pair has `columns` multiply-adds into O, each counted 1, and `row_words` into the score that
/// is counted of it, each counted `score_weight`.
struct ScoredWork {
  double columns = 1;       // d_v
  double row_words = 1;     // d_k
  double score_weight = 0;  // alpha
  double fast_words = 1;    // M

  double of_pair() const { return columns + score_weight * row_words; }
};

/// The most work in segments with at most that many words: usable ones, and those of single pairs
/// that are written in it. Never less per word with more words.
/// [io/bounds/scored_work_test "random segments"]
///
/// Cost: some 10 ns for each entry of the density, of those with about as many pairs as words.
double most_scored_work(const PairDensity& density, const ScoredWork& work, double words);

}  // namespace attest::io
