#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace attest::io {

/// Visible pairs, row by row: the keys that each row sees, ascending.
struct PairLists {
  std::vector<std::vector<std::int32_t>> rows;
  std::int64_t keys = 0;
};

/// How many words a row and a key stand for where words are counted in place of rows and keys.
struct IndexWords {
  std::int64_t row = 1, key = 1;
};

/// How evenly a pattern's pairs lie: I rows and J keys have at most mean I J + sqrt(I J spread(n))
/// pairs among them, n the smaller of I and J.  docs/theory/bounds/patterns.md
/// [io/bounds/patterns/neighbourhoods_test "any rows and keys"]
class Neighbourhoods {
 public:
  /// Requires: key numbers from 0 to keys - 1. Else throws InternalError.
  /// Cost:     the sum of squared degrees, and rows^2 + keys^2. Nothing when that is more than 2^29
  ///           steps, or when a row or key count exceeds 2^15.
  static std::optional<Neighbourhoods> of(const PairLists& pairs);

  double mean() const;
  double spread(std::int64_t indices) const;  // does not decrease; never below its exact value

  /// The most pairs of sets of `indices` rows and keys together, as far as this tells.
  std::int64_t most_pairs(std::int64_t indices) const;

  /// The most pairs of a word of a row and a word of a key that sees each other, of sets of so many
  /// words together.  [io/bounds/patterns/neighbourhoods_test "words"]
  double most_pairs_of_words(std::int64_t words, IndexWords of) const;

  /// Takes what holds for either of two patterns with the same mean.
  void include(const Neighbourhoods& other);

 private:
  std::int64_t mean_4096_ = 0;        // 4096 mean
  std::vector<std::int64_t> spread_;  // 4096^2 spread, from one index on, constant at the end
};

}  // namespace attest::io
