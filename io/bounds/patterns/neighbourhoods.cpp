#include "io/bounds/patterns/neighbourhoods.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

#include "core/error.hpp"
#include "io/bounds/segments.hpp"

namespace attest::io {
namespace {

using Lists = std::vector<std::vector<std::int32_t>>;

constexpr std::int64_t kUnit = 4096;  // whole numbers stand for multiples of 1/4096
constexpr std::int64_t kMostSteps = std::int64_t{1} << 29;
constexpr std::size_t kMostIndices = std::size_t{1} << 15;

Lists transposed(const Lists& rows, std::int64_t keys) {
  Lists result(static_cast<std::size_t>(keys));
  for (std::size_t row = 0; row < rows.size(); ++row) {
    for (const std::int32_t key : rows[row]) {
      if (key < 0 || key >= keys) throw InternalError("a key of a pair is out of range");
      result[static_cast<std::size_t>(key)].push_back(static_cast<std::int32_t>(row));
    }
  }
  return result;
}

std::int64_t squares(const Lists& lists) {
  std::int64_t sum = 0;
  for (const auto& list : lists) {
    sum += static_cast<std::int64_t>(list.size()) * static_cast<std::int64_t>(list.size());
  }
  return sum;
}

// Raises spread[n - 1] to the greatest sum, over one row, of its n largest products with rows:
// of row minus mean and row minus mean, which is common keys - mean (r + r') + mean^2 keys.
void raise_spread(const Lists& rows, const Lists& keys, std::int64_t mean,
                  std::vector<std::int64_t>& spread) {
  const auto size = [](const std::vector<std::int32_t>& list) {
    return static_cast<std::int64_t>(list.size());
  };
  const std::int64_t constant = mean * mean * static_cast<std::int64_t>(keys.size());
  std::vector<std::int64_t> common(rows.size()), products;
  for (const auto& row : rows) {
    std::fill(common.begin(), common.end(), 0);
    for (const std::int32_t key : row) {
      for (const std::int32_t other : keys[static_cast<std::size_t>(key)]) {
        ++common[static_cast<std::size_t>(other)];
      }
    }
    products.clear();
    for (std::size_t other = 0; other < rows.size(); ++other) {
      const std::int64_t product =
          common[other] * kUnit * kUnit - mean * kUnit * (size(row) + size(rows[other])) + constant;
      if (product > 0) products.push_back(product);  // fewer than n of them: the sum is less
    }
    std::sort(products.begin(), products.end(), std::greater<>());
    std::int64_t sum = 0;
    for (std::size_t n = 0; n < spread.size(); ++n) {
      if (n < products.size()) sum += products[n];
      spread[n] = std::max(spread[n], sum);
    }
  }
}

}  // namespace

std::optional<Neighbourhoods> Neighbourhoods::of(const PairLists& pairs) {
  const Lists keys = transposed(pairs.rows, pairs.keys);
  if (std::max(pairs.rows.size(), keys.size()) > kMostIndices || keys.empty() ||
      pairs.rows.empty() || squares(pairs.rows) + squares(keys) > kMostSteps) {
    return std::nullopt;
  }
  std::int64_t total = 0;
  for (const auto& row : pairs.rows) total += static_cast<std::int64_t>(row.size());
  Neighbourhoods result;
  result.mean_4096_ = total * kUnit / (static_cast<std::int64_t>(pairs.rows.size()) * pairs.keys);
  result.spread_.resize(std::max(pairs.rows.size(), keys.size()));
  raise_spread(pairs.rows, keys, result.mean_4096_, result.spread_);
  raise_spread(keys, pairs.rows, result.mean_4096_, result.spread_);
  return result;
}

double Neighbourhoods::mean() const {
  return static_cast<double>(mean_4096_) / static_cast<double>(kUnit);
}

double Neighbourhoods::spread(std::int64_t indices) const {
  if (indices < 1) return 0;
  const auto last = static_cast<std::int64_t>(spread_.size());
  const std::int64_t value = spread_[static_cast<std::size_t>(std::min(indices, last) - 1)];
  return rounded_up(static_cast<double>(value) / static_cast<double>(kUnit * kUnit));
}

std::int64_t Neighbourhoods::most_pairs(std::int64_t indices) const {
  const double half = static_cast<double>(indices) / 2;
  const double pairs = mean() * half * half + half * std::sqrt(spread(indices / 2));
  return static_cast<std::int64_t>(std::floor(rounded_up(pairs)));
}

// row I + key J = words: IJ <= words^2 / (4 row key), and the smaller of I and J is at most
// words / (row + key). Parts of an index count as parts: spread is concave, and linear in between.
double Neighbourhoods::most_pairs_of_words(std::int64_t words, IndexWords of) const {
  const std::int64_t each = of.row + of.key;
  const double below = spread(words / each), above = spread(words / each + 1);
  const double between =
      below + (above - below) * static_cast<double>(words % each) / static_cast<double>(each);
  const double half = static_cast<double>(words) / 2;
  const double sides = static_cast<double>(of.row) * static_cast<double>(of.key);
  return rounded_up(mean() * half * half + half * std::sqrt(sides * rounded_up(between)));
}

void Neighbourhoods::include(const Neighbourhoods& other) {
  if (other.mean_4096_ != mean_4096_ || other.spread_.size() != spread_.size()) {
    throw InternalError("neighbourhoods of patterns of different sizes");
  }
  for (std::size_t n = 0; n < spread_.size(); ++n) {
    spread_[n] = std::max(spread_[n], other.spread_[n]);
  }
}

}  // namespace attest::io
