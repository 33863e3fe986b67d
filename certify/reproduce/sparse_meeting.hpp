#pragma once

#include <cstdint>
#include <vector>

#include "certify/reproduce/experiment.hpp"
#include "sparse/inputs/tile_words.hpp"

/// The claims about the product of sparse Q and K, from words that were counted.
namespace attest::certify {

/// So many entries in every row of Q and K.
struct SparseSubject {
  std::int64_t seqlen = 0, head_dim = 0, entries = 0;
  sparse::ProductWords words;

  /// nnz^2 / Z, nnz the entries of one of two matrices alike: where the orders of both cases are
  /// equal.
  double dividing_point() const;
};

/// Exponents of fast memory in both cases for the subject in the middle, and where the cases meet
/// for all of them; `steps` sizes of fast memory to a factor of two. Requires: at least three
/// subjects of ascending density, the last one dense. [certify/reproduce/sparse_meeting_test
/// "altered words"]
Findings sparse_findings(const std::vector<SparseSubject>& subjects, int steps);

}  // namespace attest::certify
