#include "reference/gradient_sums.hpp"

#include <algorithm>
#include <utility>

#include "reference/coherent_groups.hpp"
#include "reference/roundoff.hpp"
#include "reference/vector_product.hpp"

namespace attest::reference {
namespace {

// Variance weights of one output row: summands of equal magnitude err together, and so do those
// whose cast falls on the same grid position. A group enters through its total weight.
class RowGrouping {
 public:
  explicit RowGrouping(const Numerics& numerics) : numerics_(numerics) {}

  // Replaces `deviation` by variance weights; returns the coherence where a drift may follow.
  double apply(const double* magnitude, Eigen::Index count, double* deviation, double terms) {
    constexpr double kTieWidth = 0x1p-30;  // of the logarithm
    const auto size = static_cast<std::size_t>(count);
    spread_.assign(deviation, deviation + count);
    groups_.sort(magnitude, count);
    groups_.group_sums(kTieWidth, spread_.data(), total_);
    for (std::size_t k = 0; k < size; ++k) {
      // A summand of magnitude zero is in no group; its own weight remains.
      deviation[k] = std::max(total_[k], spread_[k]) * spread_[k];
    }
    const double up = numerics_.p_roundoff;
    if (up > 0) {
      groups_.group_sums(up, magnitude, total_);
      for (std::size_t k = 0; k < size; ++k) deviation[k] += up * up * total_[k] * magnitude[k];
    }
    if (terms < kDriftTerms) return 0;
    return groups_.coherence(terms * numerics_.accumulator_roundoff, magnitude,
                             summation_depth(numerics_, terms));
  }

 private:
  const Numerics& numerics_;
  CoherentGroups groups_;
  std::vector<double> spread_, total_;
};

}  // namespace

GradientSums sum_over_keys(const Numerics& numerics, const Matrix& magnitude, const Vector& terms,
                           const WeightedErrors& errors, const Operand& operand) {
  GradientSums sums;
  sums.proved = product(errors.proved, operand.magnitude);
  sums.linear = product(errors.linear, operand.magnitude);
  sums.absolute = product(magnitude, operand.magnitude);
  sums.terms = terms;
  sums.coherence = Vector::Zero(sums.terms.size());
  Matrix variance = errors.deviation;
  RowGrouping grouping(numerics);
  for (Eigen::Index row = 0; row < variance.rows(); ++row) {
    sums.coherence(row) = grouping.apply(magnitude.row(row).data(), variance.cols(),
                                         variance.row(row).data(), sums.terms(row));
  }
  sums.variance = product(variance, operand.square);
  return sums;
}

RowSums::RowSums(const Numerics& numerics, const Operand& operand, Eigen::Index keys)
    : numerics_(numerics), operand_(operand) {
  const Eigen::Index rows = operand.magnitude.rows(), columns = operand.magnitude.cols();
  for (auto* sum : {&sums_.proved, &sums_.linear, &sums_.absolute}) sum->setZero(keys, columns);
  sums_.terms = sums_.coherence = Vector::Zero(keys);
  magnitude_.resize(keys, rows);
  deviation_.resize(keys, rows);
}

void RowSums::add(std::int64_t first, const Matrix& magnitude, const Vector& terms,
                  const WeightedErrors& errors) {
  add_transposed_product(errors.proved, operand_.magnitude, first, sums_.proved);
  add_transposed_product(errors.linear, operand_.magnitude, first, sums_.linear);
  add_transposed_product(magnitude, operand_.magnitude, first, sums_.absolute);
  sums_.terms += terms;
  magnitude_.middleCols(first, magnitude.rows()) = magnitude.transpose();
  deviation_.middleCols(first, magnitude.rows()) = errors.deviation.transpose();
}

GradientSums RowSums::finish() {
  RowGrouping grouping(numerics_);
  for (Eigen::Index key = 0; key < deviation_.rows(); ++key) {
    sums_.coherence(key) = grouping.apply(magnitude_.row(key).data(), deviation_.cols(),
                                          deviation_.row(key).data(), sums_.terms(key));
  }
  sums_.variance = product(deviation_, operand_.square);
  return std::move(sums_);
}

}  // namespace attest::reference
