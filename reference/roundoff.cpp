#include "reference/roundoff.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace attest::reference {

double gamma(double n, double u) {
  const double x = n * u;
  return x < 1 ? x / (1 - x) : std::numeric_limits<double>::infinity();
}

double accumulation_error(const Numerics& numerics, double terms) {
  const double u = numerics.accumulator_roundoff;
  switch (numerics.accumulation) {
    case Accumulation::nearest:
      return gamma(terms, u);
    case Accumulation::truncating:
      return gamma(terms, 2 * u);
    case Accumulation::fused_blocks:
      break;
  }
  const auto block = static_cast<double>(numerics.fused_block);
  const double per_block = (block + 1) * std::exp2(-numerics.fused_fraction_bits) + 2 * u;
  return gamma(std::ceil(terms / block), per_block);
}

double accumulation_deviation(const Numerics& numerics, double terms) {
  if (numerics.accumulation != Accumulation::nearest) return 0;
  return std::sqrt(terms) * numerics.accumulator_roundoff;
}

double accumulation_bias(const Numerics& numerics, double terms) {
  return numerics.accumulation == Accumulation::nearest ? 0 : accumulation_error(numerics, terms);
}

double summation_depth(const Numerics& numerics, double n) {
  if (numerics.summation_depth == 0) return n;
  return std::min(n, static_cast<double>(numerics.summation_depth));
}

double exponential_error(const Numerics& numerics) {
  return 2.02 * numerics.exp_ulps * numerics.accumulator_roundoff;
}

double flush_unit(const Numerics& numerics) {
  return numerics.accumulator_roundoff > 0x1p-30 ? 0x1p-126 : 0x1p-1022;
}

double drift_of(double coherence, double terms, double depth) {
  return terms >= kDriftTerms && coherence > 3 * std::sqrt(depth) ? coherence : 0;
}

void SortedGroups::sort(const double* x, std::int64_t count, std::int64_t stride) {
  order_.clear();
  for (std::int64_t e = 0; e < count; ++e) {
    if (x[e * stride] > -std::numeric_limits<double>::infinity()) order_.push_back(e);
  }
  std::sort(order_.begin(), order_.end(),
            [&](std::int64_t a, std::int64_t b) { return x[a * stride] < x[b * stride]; });
  sorted_.clear();
  for (const std::int64_t e : order_) sorted_.push_back(x[e * stride]);
}

void SortedGroups::group_sums(double width, const std::vector<double>& weight,
                              std::vector<double>& total) const {
  total.assign(weight.size(), 0.0);
  for (std::size_t begin = 0, end = 0; begin < order_.size(); begin = end) {
    double sum = 0;
    for (end = begin; end < order_.size() && sorted_[end] - sorted_[begin] <= width; ++end) {
      sum += weight[static_cast<std::size_t>(order_[end])];
    }
    for (std::size_t k = begin; k < end; ++k) total[static_cast<std::size_t>(order_[k])] = sum;
  }
}

double SortedGroups::coherence(double width, const std::vector<double>& weight,
                               double depth) const {
  double coherent = 0, all = 0;
  for (std::size_t begin = 0, end = 0; begin < order_.size(); begin = end) {
    double sum = 0;
    for (end = begin; end < order_.size() && sorted_[end] - sorted_[begin] <= width; ++end) {
      sum += weight[static_cast<std::size_t>(order_[end])];
    }
    all += sum;
    coherent += sum * std::min(static_cast<double>(end - begin), depth);
  }
  return all > 0 ? coherent / all : 0;
}

}  // namespace attest::reference
