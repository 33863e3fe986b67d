#include "io/bounds/dense/backward_price.hpp"

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "io/bounds/segments.hpp"

namespace attest::io {
namespace {

constexpr std::int64_t kPricesPerOctave = 256, kProductsPerOctave = 1024;
constexpr int kCarriedSteps = 512;

std::int64_t next_length(std::int64_t words, std::int64_t per_octave) {
  return words + std::max<std::int64_t>(words / per_octave, 1);
}

// The first lengths of the grid, the same for all patterns.
std::vector<std::int64_t> lengths_up_to(std::int64_t words, std::int64_t per_octave) {
  std::vector<std::int64_t> lengths{1};
  while (lengths.back() < words) lengths.push_back(next_length(lengths.back(), per_octave));
  return lengths;
}

// Work that segments can do on one component.
class Segments {
 public:
  Segments(const PatternComponent& component, std::int64_t head_dim)
      : head_dim_(static_cast<double>(head_dim)),
        all_work_(12 * static_cast<double>(component.pairs())),
        density_(component) {
    const IndexWords words{3 * head_dim, 4 * head_dim};
    const DegreeLimit limit(component, words);
    lengths_ = lengths_up_to(limit.most_indices(), kProductsPerOctave);
    for (const std::int64_t length : lengths_) {
      const std::int64_t known = std::min(length, limit.most_indices());
      auto pairs = static_cast<double>(limit.most_pairs(known));
      if (component.neighbourhoods) {
        pairs = std::min(pairs, component.neighbourhoods->most_pairs_of_words(known, words));
      }
      products_.push_back(rounded_up(pairs / (head_dim_ * head_dim_)));
    }
  }

  std::int64_t all_words() const { return lengths_.back(); }

  // The most work of `usable_words`, whatever part of them is carried: the greatest of
  // kCarriedSteps steps. Work grows with both of its arguments, so that several steps together have
  // no more than one that allows what each of them does; few steps are looked at alone. A third of
  // the words carried is the most where rows and keys are dense.
  double most_work(double usable_words) const {
    double most = std::max(steps(usable_words, 0, 1),
                           steps(usable_words, kCarriedSteps / 3, kCarriedSteps / 3 + 1));
    raise(usable_words, 0, kCarriedSteps, most);
    return std::min(most, all_work_);
  }

 private:
  // With a part carried that lies in one of these steps.
  double steps(double usable_words, int first, int end) const {
    const double least = usable_words * first / kCarriedSteps;
    return work(rounded_up(usable_words - least), usable_words * end / kCarriedSteps);
  }

  void raise(double usable_words, int first, int end, double& most) const {
    const double bound = steps(usable_words, first, end);
    if (bound <= most || most >= all_work_) return;
    if (end - first == 1) {
      most = bound;
      return;
    }
    const int middle = (first + end) / 2;
    raise(usable_words, first, middle, most);
    raise(usable_words, middle, end, most);
  }

  // With so many words of rows and keys and so many carried.
  double work(double words, double carried) const {
    const double products = most_products(words);
    const double by_products =
        products >= 4 * carried ? products + 4 * carried : 4 * std::sqrt(carried * products);
    const double by_density =
        4 * density_.at(std::max(rounded_up(carried + products), 1.0)) * words / head_dim_;
    return rounded_up(std::min(by_products, by_density));
  }

  // H: sum over visible pairs of x_i y_j.
  double most_products(double words) const {
    const auto next = std::partition_point(
        lengths_.begin(), lengths_.end(),
        [words](std::int64_t length) { return static_cast<double>(length) < words; });
    return next == lengths_.end() ? products_.back()
                                  : products_[static_cast<std::size_t>(next - lengths_.begin())];
  }

  double head_dim_, all_work_;
  PairDensity density_;
  std::vector<std::int64_t> lengths_;  // the last covers all words
  std::vector<double> products_;       // H at these
};

}  // namespace

BackwardPrice::BackwardPrice(const PatternComponent& component, std::int64_t head_dim) {
  if (head_dim < 1) throw InternalError("the price of a head dimension below 1");
  const Segments segments(component, head_dim);
  double price = 0;
  std::int64_t fewest = 1;
  for (const std::int64_t length :
       lengths_up_to(segments.all_words() + component.pairs(), kPricesPerOctave)) {
    const double most = segments.most_work(static_cast<double>(length));
    price = std::max(price, rounded_up(most / static_cast<double>(fewest)));
    prices_.push_back(price);
    fewest = length + 1;
  }
}

double BackwardPrice::work_per_word(double usable_words) const {
  std::int64_t length = 1;
  std::size_t index = 0;
  while (index + 1 < prices_.size() && static_cast<double>(length) < usable_words) {
    length = next_length(length, kPricesPerOctave);
    ++index;
  }
  return prices_[index];
}

void BackwardPrice::include(const BackwardPrice& other) {
  const std::size_t common = std::min(prices_.size(), other.prices_.size());
  for (std::size_t n = 0; n < common; ++n) prices_[n] = std::max(prices_[n], other.prices_[n]);
  const double own = prices_.back();
  for (std::size_t n = common; n < prices_.size(); ++n) {
    prices_[n] = std::max(prices_[n], other.prices_.back());
  }
  for (std::size_t n = common; n < other.prices_.size(); ++n) {
    prices_.push_back(std::max(own, other.prices_[n]));
  }
}

}  // namespace attest::io
