#pragma once

#include <cstdint>
#include <vector>

#include "core/numerics.hpp"
#include "reference/bounds/steps/coherent_groups.hpp"
#include "reference/bounds/steps/score_error.hpp"
#include "reference/bounds/steps/weights/running_maximum.hpp"
#include "reference/group.hpp"

/// The weights of a row's keys and what they err, before anything is summed over V
/// (docs/theory/error-bounds/forward.md, "Errors of the weights").
namespace attest::reference {

/// Everything of one row that does not depend on the column of V.
struct Row {
  std::int64_t begin = 0, end = 0;  // all visible keys lie within
  double visible = 0, coherence = 0, drift = 0;
  std::int64_t top = -1;                   // the key whose computed score is the largest, if any
  double merges = 0;                       // of splits
  Rises rescales;                          // merges included
  double depth = 0;                        // the longest chain of additions
  double deepest = 0, likely_deepest = 0;  // and of rescales
  double lost = 0, lost_in_sum = 0;        // of a weight by flushing, and of their sum
  double lost_in_products = 0;             // of a sum of products in a low accumulator
  bool saturated = false;  // an error of a score so large that e^error means nothing
  double lse_growth = 0;   // log of the sum of P e^eta
  double mean_log_error = 0, mean_error = 0, mean_linear = 0, largest_error = 0, inflation = 1;
  double typical_growth = 1;
  double lse_variance = 0, cast_variance = 0;
  double largest_p = 0, maximum = 0, lse = 0, normalizer = 1;
  double stale = 0;                    // how far the maximum may stay behind
  double split = 0, split_common = 0;  // log-errors of merging splits through LSE
  // Relative errors of a sum of weights against that of the same weights made once more.
  double made_twice = 0, likely_made_twice = 0;
};

/// Weights of the keys in the sums over V, for a block of rows.
struct Weights {
  Matrix P, present;        // the exact weights; 1 where they are not 0
  Matrix proved, linear;    // of |v - O|
  Matrix variance;          // of (v - O)^2
  Matrix cast;              // variance weights of the cast of P: of v^2, or of (v - O)^2
  bool all_present = true;  // every row weighs every key

  Weights(const Numerics& numerics, Eigen::Index rows, Eigen::Index keys) {
    for (auto* matrix : {&P, &present, &proved, &linear, &variance}) {
      *matrix = Matrix::Zero(rows, keys);
    }
    if (numerics.p_roundoff > 0) cast = Matrix::Zero(rows, keys);
  }
};

/// One row of a block under analysis.
struct RowOfScores {
  const Numerics& numerics;
  const Matrix& S;
  const ScoreError& error;
  Eigen::Index r;
  std::int64_t sink = -1;  // its column, if there is one
};

/// Memory that rows take turns in.
struct RowWorkspace {
  CoherentGroups groups;
  RunningMaximum maximum;
  std::vector<double> score_error;  // largest error of a computed score
  std::vector<double> spread, total;
  std::vector<double> raised;  // log P + eta
};

/// Fills row r of the weights, which are 0 before.
/// Requires: a row that sees a key. Cost: an exponential, a sort and some thirty operations per
/// key. [proptest/suites/validation_test]
Row analyse_row(const RowOfScores& in, Weights& weights, RowWorkspace& work);

}  // namespace attest::reference
