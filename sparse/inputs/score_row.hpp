#pragma once

#include <cstdint>
#include <vector>

#include "core/sparse_operands/sparse_operands.hpp"

namespace attest::sparse {

/// e^(s - shift) - e^-shift. No term cancels and none overflows for shift >= max(0, s).
float excess(float s, float shift);

/// Returns the weight of every key of a row: e^-shift, or 0 where its support is every key (full is
/// not 0).
float background(float shift, float full);

/// Returns the weight beyond the background of a key of the support with score s.
float weight_beyond(float s, float shift, float full);

/// One row of scores: the keys that share a column with the query, and what they weigh.
class ScoreRow {
 public:
  explicit ScoreRow(const SparseOperands& operands);

  /// Forms the scores of a query over its support.
  void form(std::int64_t query);

  /// Keys of the support, in the order in which they were met.
  const std::vector<std::int32_t>& keys() const { return keys_; }

  /// max over all keys, those off the support at 0.
  float maximum() const;

  /// background() = e^-shift, what every key weighs; weight(key) = e^(s - shift) - background().
  /// Where the support is every key nothing is common: background() = 0, weight(key) =
  /// e^(s - shift).
  void weigh(float shift);
  float background() const { return background_; }
  float weight(std::int32_t key) const { return values_[static_cast<std::size_t>(key)]; }

 private:
  bool full() const { return static_cast<std::int64_t>(keys_.size()) == operands_.K.rows; }

  const SparseOperands& operands_;
  CsrMatrix keys_by_column_;
  float scale_;
  float background_ = 0;
  std::vector<std::int32_t> keys_;
  std::vector<float> values_;          // by key: its score, then its weight
  std::vector<std::int64_t> met_for_;  // by key: the query that met it last
};

}  // namespace attest::sparse
