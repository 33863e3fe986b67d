#include "reference/bounds/steps/weights/alike_rows.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

namespace attest::reference {
namespace {

// Returns the sign of the first element that is not 0.
double sign_of(const Matrix& rows, Eigen::Index r) {
  for (Eigen::Index c = 0; c < rows.cols(); ++c) {
    if (rows(r, c) != 0) return rows(r, c) > 0 ? 1 : -1;
  }
  return 0;
}

}  // namespace

Vector alike_rows(const Matrix& rows) {
  Vector sign(rows.rows());
  std::vector<Eigen::Index> order;
  for (Eigen::Index r = 0; r < rows.rows(); ++r) {
    sign(r) = sign_of(rows, r);
    if (sign(r) != 0) order.push_back(r);
  }
  // Negative where row a comes before row b, each turned so that it begins with a positive element.
  const auto compare = [&](Eigen::Index a, Eigen::Index b) {
    for (Eigen::Index c = 0; c < rows.cols(); ++c) {
      const double x = sign(a) * rows(a, c), y = sign(b) * rows(b, c);
      if (x != y) return x < y ? -1 : 1;
    }
    return 0;
  };
  std::sort(order.begin(), order.end(),
            [&](Eigen::Index a, Eigen::Index b) { return compare(a, b) < 0; });
  std::size_t first = 0, most = 1;
  for (std::size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    while (end < order.size() && compare(order[begin], order[end]) == 0) ++end;
    if (end - begin > most) {
      first = begin;
      most = end - begin;
    }
  }
  if (most < 2) return {};
  Vector alike = Vector::Zero(rows.rows());
  for (std::size_t k = first; k < first + most; ++k) alike(order[k]) = sign(order[k]);
  return alike;
}

}  // namespace attest::reference
