#include "reference/bounds/steps/gradient_sums.hpp"

#include <algorithm>

#include "reference/bounds/steps/coherent_groups.hpp"
#include "reference/bounds/steps/roundoff.hpp"
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
    for (std::size_t k = 0; k < size; ++k) deviation[k] = total_[k] * spread_[k];
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

SumsOfOutputs::SumsOfOutputs(const Numerics& numerics, const Operand& operand, Eigen::Index outputs)
    : numerics_(numerics), operand_(operand) {
  const Eigen::Index summands = operand.square.rows(), columns = operand.square.cols();
  for (auto* sum : {&sums_.proved, &sums_.linear, &sums_.absolute}) sum->setZero(outputs, columns);
  magnitude_.setZero(outputs, summands);  // an output may have fewer
  deviation_.setZero(outputs, summands);
}

void SumsOfOutputs::add_all(const Matrix& magnitude, const WeightedErrors& errors,
                            const auto& add_to) {
  const auto& [operand, vanishing] = operand_.magnitudes;
  add_to(sums_.proved, errors.proved, operand);
  add_to(sums_.linear, errors.linear, operand);
  add_to(sums_.absolute, magnitude, operand);
  if (vanishing.size() == 0) return;
  add_to(sums_.proved, magnitude + errors.proved, vanishing);
  add_to(sums_.linear, magnitude, vanishing);
}

void SumsOfOutputs::add(std::int64_t first, const Matrix& magnitude, const WeightedErrors& errors) {
  add_all(magnitude, errors, [&](Matrix& sum, const Matrix& weights, const Matrix& operand) {
    add_product(weights, operand.middleRows(first, weights.cols()), sum.topRows(weights.rows()));
  });
  magnitude_.block(0, first, magnitude.rows(), magnitude.cols()) = magnitude;
  deviation_.block(0, first, magnitude.rows(), magnitude.cols()) = errors.deviation;
}

void SumsOfOutputs::add_transposed(std::int64_t first_output, std::int64_t first,
                                   const Matrix& magnitude, const WeightedErrors& errors) {
  add_all(magnitude, errors, [&](Matrix& sum, const Matrix& weights, const Matrix& operand) {
    add_transposed_product(weights, operand.middleRows(first, weights.rows()),
                           sum.middleRows(first_output, weights.cols()));
  });
  const auto keep = [&](Matrix& all, const Matrix& tile) {
    all.block(first_output, first, tile.cols(), tile.rows()) = tile.transpose();
  };
  keep(magnitude_, magnitude);
  keep(deviation_, errors.deviation);
}

void SumsOfOutputs::add_entry(Eigen::Index output, Eigen::Index summand, double magnitude,
                              const Errors& errors) {
  sums_.proved(output, 0) += errors.proved;
  sums_.linear(output, 0) += errors.linear;
  sums_.absolute(output, 0) += magnitude;
  magnitude_(output, summand) = magnitude;
  deviation_(output, summand) = errors.deviation;
}

GradientSums SumsOfOutputs::finish(const Vector& terms) {
  sums_.terms = terms;
  sums_.coherence = Vector::Zero(terms.size());
  RowGrouping grouping(numerics_);
  for (Eigen::Index output = 0; output < terms.size(); ++output) {
    sums_.coherence(output) = grouping.apply(magnitude_.row(output).data(), deviation_.cols(),
                                             deviation_.row(output).data(), terms(output));
  }
  sums_.variance = product(deviation_.topRows(terms.size()), operand_.square);
  GradientSums result = sums_;
  for (auto* sum : {&sums_.proved, &sums_.linear, &sums_.absolute}) sum->setZero();
  return result;
}

}  // namespace attest::reference
