#pragma once

#include "reference/group.hpp"

namespace attest::reference {

/// Weights of the keys in a row's sums over distances |v - O|. Each points to one double per key.
struct DistanceWeights {
  const double* first;   // of |v - O|
  const double* second;  // of |v - O|
  const double* square;  // of (v - O)^2
};

/// One sum per column of V for each of the weights.
struct DistanceSums {
  Vector first, second, square;
};

/// V with columns of zeros appended until their number suits distance_sums.
Matrix padded_columns(const Matrix& V);

/// sum_j w_j |v_jc - O_c| and sum_j w_j (v_jc - O_c)^2 over the keys begin <= j < end, for every
/// column c of the padded V. Unlike products of matrices these sums cancel nothing: a constant V
/// gives exactly 0.
///
/// Shapes:   V (keys, columns) from padded_columns, O (columns).
/// Requires: V and O finite. Cost: 9 operations per key and column, in vectors.
/// [reference/bounds/steps/distance_sums_test]
void distance_sums(const Matrix& V, const Vector& O, const DistanceWeights& weights,
                   std::int64_t begin, std::int64_t end, DistanceSums& sums);

/// max_j |v_jc - O_c| over the keys with weights[j] > 0, per column.
/// [reference/bounds/steps/distance_sums_test]
Vector farthest(const Matrix& V, const Vector& O, const double* weights, std::int64_t begin,
                std::int64_t end);

}  // namespace attest::reference
