#include "reference/bounds/steps/weights/alike_rows.hpp"

#include <algorithm>
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

// Rows that are equal, or the negative of one another, one after the other; rows of zeros are left
// out.
struct Classes {
  Vector sign;
  std::vector<Eigen::Index> order;
  std::vector<std::size_t> starts;  // in `order`; its length at the end

  explicit Classes(const Matrix& rows) : sign(rows.rows()), starts{0} {
    for (Eigen::Index r = 0; r < rows.rows(); ++r) {
      sign(r) = sign_of(rows, r);
      if (sign(r) != 0) order.push_back(r);
    }
    // Negative where row a comes before row b, each turned so that it begins with a positive
    // element.
    const auto compare = [&](Eigen::Index a, Eigen::Index b) {
      for (Eigen::Index c = 0; c < rows.cols(); ++c) {
        const double x = sign(a) * rows(a, c), y = sign(b) * rows(b, c);
        if (x != y) return x < y ? -1 : 1;
      }
      return 0;
    };
    std::sort(order.begin(), order.end(),
              [&](Eigen::Index a, Eigen::Index b) { return compare(a, b) < 0; });
    for (std::size_t k = 1; k < order.size(); ++k) {
      if (compare(order[k - 1], order[k]) != 0) starts.push_back(k);
    }
    if (!order.empty()) starts.push_back(order.size());
  }

  std::size_t size(std::size_t number) const { return starts[number + 1] - starts[number]; }
};

}  // namespace

Vector alike_rows(const Matrix& rows) {
  const Classes classes(rows);
  std::size_t largest = 0;
  for (std::size_t k = 0; k + 1 < classes.starts.size(); ++k) {
    if (classes.size(k) > classes.size(largest)) largest = k;
  }
  if (classes.order.empty() || classes.size(largest) < 2) return {};
  Vector alike = Vector::Zero(rows.rows());
  for (std::size_t e = classes.starts[largest]; e < classes.starts[largest + 1]; ++e) {
    const Eigen::Index row = classes.order[e];
    alike(row) = classes.sign(row);
  }
  return alike;
}

Vector repeated_rows(const Matrix& rows) {
  const Classes classes(rows);
  Vector repeated = Vector::Zero(rows.rows());
  for (std::size_t k = 0; k + 1 < classes.starts.size(); ++k) {
    if (classes.size(k) < 2) continue;
    for (std::size_t e = classes.starts[k]; e < classes.starts[k + 1]; ++e) {
      repeated(classes.order[e]) = 1;
    }
  }
  return repeated;
}

}  // namespace attest::reference
