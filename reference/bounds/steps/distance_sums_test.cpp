#include "reference/bounds/steps/distance_sums.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/rng.hpp"
#include "core/testing/catch.hpp"

using attest::Rng;
using namespace attest::reference;

namespace {

Matrix random_matrix(Eigen::Index rows, Eigen::Index columns, std::uint64_t seed) {
  Rng rng(seed);
  Matrix matrix(rows, columns);
  for (Eigen::Index k = 0; k < matrix.size(); ++k) matrix.data()[k] = rng.normal();
  return matrix;
}

TEST_CASE("distance sums follow their definition on every column and key range", "[reference]") {
  for (const Eigen::Index columns : {1, 15, 16, 37}) {
    const Matrix values = random_matrix(9, columns, 1), V = padded_columns(values);
    const Matrix w = random_matrix(3, 9, 2).cwiseAbs(), mean = random_matrix(1, columns, 3);
    Vector O = Vector::Zero(V.cols());
    O.head(columns) = mean.row(0).transpose();
    DistanceSums sums;
    distance_sums(V, O, {w.row(0).data(), w.row(1).data(), w.row(2).data()}, 2, 8, sums);
    const Vector most = farthest(V, O, w.row(0).data(), 2, 8);
    for (Eigen::Index c = 0; c < columns; ++c) {
      double first = 0, second = 0, square = 0, largest = 0;
      for (Eigen::Index j = 2; j < 8; ++j) {
        const double distance = std::abs(values(j, c) - O(c));
        first += w(0, j) * distance;
        second += w(1, j) * distance;
        square += w(2, j) * (distance * distance);
        largest = std::max(largest, distance);
      }
      CAPTURE(columns, c);
      CHECK(sums.first(c) == first);
      CHECK(sums.second(c) == second);
      CHECK(sums.square(c) == square);
      CHECK(most(c) == largest);
    }
  }
}

TEST_CASE("the farthest key leaves out keys without weight", "[reference]") {
  Matrix values(3, 1);
  values << 1, 100, 3;
  const std::vector<double> weights{1, 0, 1};
  const Matrix V = padded_columns(values);
  CHECK(farthest(V, Vector::Zero(V.cols()), weights.data(), 0, 3)(0) == 3);
}

TEST_CASE("a constant V is at no distance from its mean", "[reference]") {
  const Matrix V = padded_columns(Matrix::Constant(5, 3, 0.1));
  Vector O = Vector::Zero(V.cols());
  O.head(3).setConstant(0.1);
  const std::vector<double> w{0.3, 0.1, 0.7, 0.9, 0.2};
  DistanceSums sums;
  distance_sums(V, O, {w.data(), w.data(), w.data()}, 0, 5, sums);
  CHECK(sums.first.isZero(0));
  CHECK(sums.square.isZero(0));
}

}  // namespace
