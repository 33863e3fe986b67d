#include "reference/bounds/steps/coherent_groups.hpp"

#include <algorithm>
#include <bit>
#include <boost/sort/pdqsort/pdqsort.hpp>
#include <cmath>

namespace attest::reference {

void CoherentGroups::sort(const double* x, std::int64_t count) {
  count_ = static_cast<std::size_t>(count);
  index_mask_ = std::bit_ceil(count_) - 1;
  unsorted_.resize(count_);
  std::size_t positive = 0;
  std::uint64_t least = ~std::uint64_t{0}, largest = 0;
  for (std::size_t e = 0; e < count_; ++e) {
    if (!(x[e] > 0)) continue;
    const std::uint64_t key = (std::bit_cast<std::uint64_t>(x[e]) & ~index_mask_) | e;
    unsorted_[positive++] = key;
    least = std::min(least, key);
    largest = std::max(largest, key);
  }
  unsorted_.resize(positive);
  sorted_.resize(positive);
  if (positive > 0) sort_keys(least, largest);
}

// Keys of equal leading bits form a bucket; about as many buckets as keys leave few in each.
// Sorting is a large part of a bound's cost, and this takes half of what a sort by comparisons
// alone does.
void CoherentGroups::sort_keys(std::uint64_t least, std::uint64_t largest) {
  constexpr std::uint32_t kMany =
      32;  // from here on comparisons in a sort that copes with any order
  const int kept = static_cast<int>(std::bit_width(unsorted_.size()));
  const int shift = std::max(0, static_cast<int>(std::bit_width(largest - least)) - kept);
  const auto bucket = [&](std::uint64_t key) {
    return static_cast<std::size_t>((key - least) >> shift);
  };
  starts_.assign(bucket(largest) + 2, 0);
  for (const std::uint64_t key : unsorted_) ++starts_[bucket(key) + 1];
  std::uint32_t fullest = 0;
  for (std::size_t b = 1; b < starts_.size(); ++b) {
    fullest = std::max(fullest, starts_[b]);
    starts_[b] += starts_[b - 1];
  }
  for (const std::uint64_t key : unsorted_) sorted_[starts_[bucket(key)]++] = key;
  // starts_[b] is now where bucket b ends.
  const auto at = [&](std::size_t k) { return sorted_.begin() + static_cast<std::ptrdiff_t>(k); };
  if (fullest >= kMany) {
    std::size_t begin = 0;
    for (std::size_t b = 0; b + 1 < starts_.size(); begin = starts_[b++]) {
      if (starts_[b] - begin < kMany) continue;
      boost::sort::pdqsort_branchless(at(begin), at(starts_[b]),
                                      [](std::uint64_t a, std::uint64_t c) { return a < c; });
    }
  }
  for (std::size_t k = 1; k < sorted_.size(); ++k) {
    const std::uint64_t key = sorted_[k];
    std::size_t hole = k;
    for (; hole > 0 && sorted_[hole - 1] > key; --hole) sorted_[hole] = sorted_[hole - 1];
    sorted_[hole] = key;
  }
}

template <typename Visit>
void CoherentGroups::for_each_group(double width, const Visit& visit) const {
  const double resolution = static_cast<double>(index_mask_) * 0x1p-52;
  const double factor = std::exp(width) * (1 + 2 * resolution);
  for (std::size_t begin = 0, end = 0; begin < sorted_.size(); begin = end) {
    const double reach = value(sorted_[begin]) * factor;
    for (end = begin + 1; end < sorted_.size() && value(sorted_[end]) <= reach;) ++end;
    if (end - begin > 1) visit(begin, end);
  }
}

void CoherentGroups::group_sums(double width, const double* weight,
                                std::vector<double>& total) const {
  total.assign(weight, weight + count_);
  for_each_group(width, [&](std::size_t begin, std::size_t end) {
    double sum = 0;
    for (std::size_t k = begin; k < end; ++k) sum += weight[index(sorted_[k])];
    for (std::size_t k = begin; k < end; ++k) total[index(sorted_[k])] = sum;
  });
}

double CoherentGroups::coherence(double width, const double* weight, double depth) const {
  double beyond = 0, all = 0;
  for (std::size_t e = 0; e < count_; ++e) all += weight[e];
  for_each_group(width, [&](std::size_t begin, std::size_t end) {
    double sum = 0;
    for (std::size_t k = begin; k < end; ++k) sum += weight[index(sorted_[k])];
    beyond += sum * (std::min(static_cast<double>(end - begin), depth) - 1);
  });
  return all > 0 ? 1 + beyond / all : 0;
}

}  // namespace attest::reference
