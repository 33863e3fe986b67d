#include "reference/gradient_sums.hpp"

#include <cmath>
#include <limits>

#include "reference/roundoff.hpp"

namespace attest::reference {
namespace {

// Variance weights of one output row: summands of equal magnitude err together, and so do those
// whose cast falls on the same grid position. A group enters through its total weight.
class RowGrouping {
 public:
  explicit RowGrouping(const Numerics& numerics) : numerics_(numerics) {}

  // Replaces `deviation` by variance weights; returns the coherence.
  double apply(const double* magnitude, Eigen::Index count, double* deviation, double terms) {
    constexpr double kTieWidth = 0x1p-30;
    const auto size = static_cast<std::size_t>(count);
    logarithm_.resize(size);
    spread_.assign(deviation, deviation + count);
    weight_.assign(magnitude, magnitude + count);
    for (std::size_t k = 0; k < size; ++k) logarithm_[k] = std::log(weight_[k]);
    groups_.sort(logarithm_.data(), count, 1);
    groups_.group_sums(kTieWidth, spread_, total_);
    for (std::size_t k = 0; k < size; ++k) {
      // A summand of magnitude zero is in no group; its own weight remains.
      deviation[k] = std::max(total_[k], spread_[k]) * spread_[k];
    }
    const double up = numerics_.p_roundoff;
    if (up > 0) {
      groups_.group_sums(up, weight_, total_);
      for (std::size_t k = 0; k < size; ++k) deviation[k] += up * up * total_[k] * weight_[k];
    }
    return groups_.coherence(terms * numerics_.accumulator_roundoff, weight_,
                             summation_depth(numerics_, terms));
  }

 private:
  const Numerics& numerics_;
  SortedGroups groups_;
  std::vector<double> logarithm_, spread_, weight_, total_;
};

}  // namespace

void WeightedErrors::resize(Eigen::Index rows, Eigen::Index keys) {
  for (auto* matrix : {&proved, &linear, &deviation}) *matrix = Matrix::Zero(rows, keys);
}

GradientSums sum_over_keys(const Numerics& numerics, const Summands& summands,
                           const Matrix& operand) {
  const Matrix absolute = operand.cwiseAbs();
  GradientSums sums;
  sums.proved.noalias() = summands.errors.proved * absolute;
  sums.linear.noalias() = summands.errors.linear * absolute;
  sums.absolute.noalias() = summands.magnitude * absolute;
  sums.floor.noalias() = summands.floor * absolute;
  sums.terms = summands.visible.rowwise().sum();
  sums.coherence = Vector::Zero(sums.terms.size());
  Matrix variance = summands.errors.deviation;
  RowGrouping grouping(numerics);
  for (Eigen::Index row = 0; row < variance.rows(); ++row) {
    sums.coherence(row) = grouping.apply(summands.magnitude.row(row).data(), variance.cols(),
                                         variance.row(row).data(), sums.terms(row));
  }
  sums.variance.noalias() = variance * operand.cwiseAbs2();
  return sums;
}

GradientSums sum_over_rows(const Numerics& numerics, const Summands& summands,
                           const Matrix& operand) {
  const Matrix magnitude = summands.magnitude.transpose(), floor = summands.floor.transpose(),
               visible = summands.visible.transpose();
  const WeightedErrors errors{summands.errors.proved.transpose(),
                              summands.errors.linear.transpose(),
                              summands.errors.deviation.transpose()};
  return sum_over_keys(numerics, {magnitude, floor, visible, errors}, operand);
}

}  // namespace attest::reference
