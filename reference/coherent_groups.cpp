#include "reference/coherent_groups.hpp"

#include <algorithm>
#include <bit>
#include <boost/sort/pdqsort/pdqsort.hpp>
#include <cmath>

namespace attest::reference {

double CoherentGroups::value(std::uint64_t key) const {
  return std::bit_cast<double>(key & ~index_mask_);
}

void CoherentGroups::sort(const double* x, std::int64_t count) {
  count_ = static_cast<std::size_t>(count);
  index_mask_ = std::bit_ceil(count_) - 1;
  sorted_.clear();
  for (std::size_t e = 0; e < count_; ++e) {
    if (x[e] > 0) sorted_.push_back((std::bit_cast<std::uint64_t>(x[e]) & ~index_mask_) | e);
  }
  // Sorting is a large part of a bound's cost; plain integers without branches are three times as
  // fast here as std::sort of positions.
  boost::sort::pdqsort_branchless(sorted_.begin(), sorted_.end(),
                                  [](std::uint64_t a, std::uint64_t b) { return a < b; });
}

template <typename Visit>
void CoherentGroups::for_each_group(double width, const Visit& visit) const {
  const double resolution = static_cast<double>(index_mask_) * 0x1p-52;
  const double factor = std::exp(width) * (1 + 2 * resolution);
  for (std::size_t begin = 0, end = 0; begin < sorted_.size(); begin = end) {
    const double reach = value(sorted_[begin]) * factor;
    while (end < sorted_.size() && value(sorted_[end]) <= reach) ++end;
    visit(begin, end);
  }
}

void CoherentGroups::group_sums(double width, const double* weight,
                                std::vector<double>& total) const {
  total.assign(count_, 0.0);
  for_each_group(width, [&](std::size_t begin, std::size_t end) {
    double sum = 0;
    for (std::size_t k = begin; k < end; ++k) sum += weight[index(sorted_[k])];
    for (std::size_t k = begin; k < end; ++k) total[index(sorted_[k])] = sum;
  });
}

double CoherentGroups::coherence(double width, const double* weight, double depth) const {
  double coherent = 0, all = 0;
  for_each_group(width, [&](std::size_t begin, std::size_t end) {
    double sum = 0;
    for (std::size_t k = begin; k < end; ++k) sum += weight[index(sorted_[k])];
    all += sum;
    coherent += sum * std::min(static_cast<double>(end - begin), depth);
  });
  return all > 0 ? coherent / all : 0;
}

}  // namespace attest::reference
