#include "reference/bounds/steps/distance_sums.hpp"

#include <cmath>

#include "core/vector_clones.hpp"

namespace attest::reference {
namespace {

constexpr std::int64_t kColumns = 16;  // columns at a time: their sums stay in registers

ATTEST_VECTOR_CLONES
void sum_columns(const double* V, std::int64_t stride, const double* O,
                 const DistanceWeights& weights, std::int64_t begin, std::int64_t end,
                 double* first, double* second, double* square) {
  double mean[kColumns], a[kColumns] = {}, b[kColumns] = {}, s[kColumns] = {};
  for (std::int64_t c = 0; c < kColumns; ++c) mean[c] = O[c];
  for (std::int64_t j = begin; j < end; ++j) {
    const double* v = V + j * stride;
    const double x = weights.first[j], y = weights.second[j], z = weights.square[j];
    for (std::int64_t c = 0; c < kColumns; ++c) {
      const double distance = std::abs(v[c] - mean[c]);
      a[c] += x * distance;
      b[c] += y * distance;
      s[c] += z * (distance * distance);
    }
  }
  for (std::int64_t c = 0; c < kColumns; ++c) first[c] = a[c], second[c] = b[c], square[c] = s[c];
}

}  // namespace

Matrix padded_columns(const Matrix& V) {
  Matrix padded = Matrix::Zero(V.rows(), (V.cols() + kColumns - 1) / kColumns * kColumns);
  padded.leftCols(V.cols()) = V;
  return padded;
}

void distance_sums(const Matrix& V, const Vector& O, const DistanceWeights& weights,
                   std::int64_t begin, std::int64_t end, DistanceSums& sums) {
  for (Vector* sum : {&sums.first, &sums.second, &sums.square}) sum->resize(V.cols());
  for (Eigen::Index c = 0; c < V.cols(); c += kColumns) {
    sum_columns(V.data() + c, V.cols(), O.data() + c, weights, begin, end, sums.first.data() + c,
                sums.second.data() + c, sums.square.data() + c);
  }
}

Vector farthest(const Matrix& V, const Vector& O, const double* weights, std::int64_t begin,
                std::int64_t end) {
  Vector largest = Vector::Zero(V.cols());
  for (std::int64_t j = begin; j < end; ++j) {
    if (!(weights[j] > 0)) continue;
    largest = largest.cwiseMax((V.row(j).transpose() - O).cwiseAbs());
  }
  return largest;
}

}  // namespace attest::reference
