#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "certify/reproduce/experiment.hpp"
#include "io/bounds/products.hpp"
#include "sparse/inputs/tile_words.hpp"

/// The claims about sparse inputs, from words that were counted: of the product of Q and K, or of
/// whole attention, forward or backward.
namespace attest::certify {

/// What is compared, and under which names it is shown.
struct SparseForms {
  std::string of;            // "the product"
  std::string large, small;  // what the curves of the two cases are
  std::string file;          // of the plot; the table is FILE_meeting
  std::string dividing = "nnz^2 / Z";
};

/// So many entries in every row of Q and K.
struct SparseSubject {
  std::int64_t seqlen = 0, head_dim = 0, entries = 0;
  sparse::ProductWords words;  // nested and outer: the large-cache and the small-cache case
  double meeting = 0;          // M at which the orders of both cases are equal; 0: nnz^2 / Z

  /// nnz^2 / Z, nnz the entries of one of two matrices alike, or what was given.
  double dividing_point() const;
};

/// Where both orders of Li et al. 2024, theorem 4.5, are equal.
/// [certify/reproduce/sparse_meeting_test "dividing point"]
double dividing_point(const io::AttentionEntries& entries);

/// Exponents of fast memory in both cases for the subject in the middle, and where the cases meet
/// for all of them; `steps` sizes of fast memory to a factor of two. Requires: at least three
/// subjects of ascending density, the last one dense. [certify/reproduce/sparse_meeting_test
/// "altered words"]
Findings sparse_findings(const std::vector<SparseSubject>& subjects, int steps,
                         const SparseForms& forms);

}  // namespace attest::certify
