#include "sparse/inputs/score_row.hpp"

#include <algorithm>
#include <cmath>

namespace attest::sparse {

float excess(float s, float shift) {
  return s > 0 ? -std::exp(s - shift) * std::expm1(-s) : std::exp(-shift) * std::expm1(s);
}

float background(float shift, float full) { return full != 0 ? 0 : std::exp(-shift); }

float weight_beyond(float s, float shift, float full) {
  return full != 0 ? std::exp(s - shift) : excess(s, shift);
}

ScoreRow::ScoreRow(const SparseOperands& operands)
    : operands_(operands),
      keys_by_column_(operands.K.transposed()),
      scale_(static_cast<float>(operands.softmax_scale)),
      values_(static_cast<std::size_t>(operands.K.rows)),
      met_for_(static_cast<std::size_t>(operands.K.rows), -1) {}

void ScoreRow::form(std::int64_t query) {
  keys_.clear();
  const auto columns = operands_.Q.row_columns(query);
  const auto entries = operands_.Q.row_values(query);
  for (std::size_t e = 0; e < columns.size(); ++e) {
    const auto keys = keys_by_column_.row_columns(columns[e]);
    const auto values = keys_by_column_.row_values(columns[e]);
    for (std::size_t f = 0; f < keys.size(); ++f) {
      const auto key = static_cast<std::size_t>(keys[f]);
      if (met_for_[key] != query) {
        met_for_[key] = query;
        keys_.push_back(keys[f]);
        values_[key] = 0;
      }
      values_[key] += entries[e] * values[f];
    }
  }
  for (const std::int32_t key : keys_) values_[static_cast<std::size_t>(key)] *= scale_;
}

float ScoreRow::maximum() const {
  float largest = full() ? weight(keys_.front()) : 0;
  for (const std::int32_t key : keys_) largest = std::max(largest, weight(key));
  return largest;
}

void ScoreRow::weigh(float shift) {
  const float all = full() ? 1 : 0;
  background_ = sparse::background(shift, all);
  for (const std::int32_t key : keys_) {
    float& value = values_[static_cast<std::size_t>(key)];
    value = weight_beyond(value, shift, all);
  }
}

}  // namespace attest::sparse
