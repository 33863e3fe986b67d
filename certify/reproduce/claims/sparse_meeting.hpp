#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "certify/reproduce/experiment.hpp"
#include "io/bounds/dense/products.hpp"
#include "sparse/inputs/words/tile_words.hpp"

/// The claims about sparse inputs, from words that were counted: of the product of Q and K, or of
/// whole attention, forward or backward.
namespace attest::certify {

/// A size of fast memory at which two orders are equal, and whose statement that is.
struct Dividing {
  std::string name;    // "nnz^2 / Z"
  std::string source;  // paper and number
};

/// Forms that are compared, and the names under which they are shown.
struct SparseForms {
  std::string of;                // "the product"
  std::string large, small;      // what the curves of the two cases are
  std::string file;              // of the plot; the table is FILE_meeting
  std::vector<Dividing> points;  // the first is marked in the plot
};

/// So many entries in every row of Q and K.
struct SparseSubject {
  std::int64_t seqlen = 0, head_dim = 0, entries = 0;
  sparse::ProductWords words;      // nested and outer: the large-cache and the small-cache case
  std::vector<double> dividing{};  // words of fast memory, in the order of SparseForms::points
};

/// Where nnz^2 / M and nnz sqrt(Z / M) are equal, the two orders of one product.
double product_dividing_point(const sparse::ProductWords& words);

/// Where both orders of Li et al. 2024, theorem 4.5, are equal.
/// [certify/reproduce/claims/sparse_meeting_test "dividing point"]
double dividing_point(const io::AttentionEntries& entries);

/// Where the orders of the forward schedules are equal, whose O is dense: with nnz entries in each
/// of Q, K and V and D = seqlen_q head_dim_v elements of O
///     nnz (nnz + D) / M    and    (nnz sqrt(Z) + sqrt(Z nnz D)) / sqrt(M).
/// For nnz = D, dense inputs, that is nnz^2 / Z, the dividing point of one product.
/// [certify/reproduce/claims/sparse_meeting_test "dense output"]
/// Source: docs/theory/sparse-inputs.md, where the cases meet.
double dense_output_dividing_point(double nnz, double dense, double pairs);

/// Exponents of fast memory in both cases for the subject in the middle, and where the cases meet
/// for all of them; `steps` sizes of fast memory to a factor of two. Requires: at least three
/// subjects of ascending density, the last one dense. [certify/reproduce/claims/sparse_meeting_test
/// "altered words"]
Findings sparse_findings(const std::vector<SparseSubject>& subjects, int steps,
                         const SparseForms& forms);

/// Tells whether schedules of sparse inputs move, with every entry present, a constant times the
/// words of dense schedules, by the exponent in M of the ratio. Both curves by the same sizes of
/// fast memory. [certify/reproduce/claims/sparse_meeting_test "dense attention as a special case"]
Claim dense_special_case(const std::string& of, const Curve& sparse, const Curve& dense);

}  // namespace attest::certify
