#include "reference/bounds/steps/weights/running_maximum.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "reference/bounds/steps/roundoff.hpp"

namespace attest::reference {

double most_successes(double mean) {
  if (!(mean > 0)) return 0;
  constexpr double kImprobable = kLambda * kLambda / 2;
  double count = std::ceil(mean);
  while (count * std::log(count / mean) - count + mean < kImprobable) ++count;
  return count - 1;  // at least `count` is improbable
}

Rises RunningMaximum::rises(const double* scores, const double* errors, std::int64_t begin,
                            std::int64_t end) {
  const Rises up = scan(scores, errors, begin, end - begin, 1);
  const Rises down = scan(scores, errors, end - 1, end - begin, -1);
  return {std::max(up.possible, down.possible), std::max(up.likely, down.likely)};
}

Rises RunningMaximum::scan(const double* scores, const double* errors, std::int64_t first,
                           std::int64_t count, std::int64_t step) {
  constexpr double kNothing = -std::numeric_limits<double>::infinity();
  double exact = kNothing;    // largest score so far
  double reached = kNothing;  // the computed maximum is at least this
  double records = 0;
  candidates_.clear();
  for (std::int64_t k = 0, j = first; k < count; ++k, j += step) {
    const double score = scores[j], error = errors[j];
    if (score == kNothing) continue;
    if (score > exact || score + error > reached) {
      candidates_.push_back(score);
      if (score > exact) exact = score, ++records;
    }
    reached = std::max(reached, score - error);
  }
  const auto possible = static_cast<double>(candidates_.size());
  // A few doubtful records all count.
  constexpr double kFew = 16;
  const double doubtful = possible - records;
  if (doubtful <= kFew) return {possible, possible};
  return {possible, records + std::min(doubtful, most_successes(expected_surplus()))};
}

// The sum over candidates that are no records of the exact scores of 1/(1 + c), c the number of
// candidates that came before with a score at least as large.
double RunningMaximum::expected_surplus() {
  const std::size_t count = candidates_.size();
  order_.resize(count);
  std::iota(order_.begin(), order_.end(), 0u);
  std::sort(order_.begin(), order_.end(), [&](std::uint32_t a, std::uint32_t b) {
    return candidates_[a] > candidates_[b] || (candidates_[a] == candidates_[b] && a < b);
  });
  tree_.assign(count + 1, 0);  // counts of positions visited, by Fenwick's scheme
  double surplus = 0;
  for (const std::uint32_t position : order_) {
    std::uint32_t before = 0;
    for (std::size_t k = position; k > 0; k &= k - 1) before += tree_[k];
    if (before > 0) surplus += 1 / (1 + static_cast<double>(before));
    for (std::size_t k = position + std::size_t{1}; k <= count; k += k & (~k + 1)) ++tree_[k];
  }
  return surplus;
}

}  // namespace attest::reference
