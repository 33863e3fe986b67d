#pragma once

#include <array>
#include <cstdint>

#include "core/abi/attest_kernel.h"
#include "cpu/kernels/tiles/query_rows.hpp"
#include "cpu/kernels/tiles/tensor_io.hpp"
#include "cpu/kernels/vectors/panels.hpp"

/// Scores of panels of queries (vectors/panels.hpp), with all that scores depend on.
namespace attest::cpu {

/// Some queries of a QueryRows, and the keys that each sees.
class QueryPanel {
 public:
  /// Takes the rows from `first` on, at most `most`. Requires: most <= kMostLanes.
  QueryPanel(const attest_problem& problem, const Batch& batch, const QueryRows& rows,
             std::int64_t first, std::int64_t most = kPanelLanes);

  std::int64_t first() const { return first_; }
  std::int64_t count() const { return count_; }
  std::int64_t lanes() const { return lanes_; }
  /// Tells whether the queries fill so few lanes that vectors along keys and columns are better.
  bool is_few() const { return count_ <= kFewLanes; }
  std::int64_t head(std::int64_t lane) const { return rows_.head(first_ + lane); }
  std::int64_t query(std::int64_t lane) const { return rows_.query(first_ + lane); }
  /// The keys that some query sees, and whether all see every one of a block.
  KeySpan seen() const { return seen_; }
  bool sees_some(std::int64_t key, std::int64_t keys) const {
    return key < seen_.end && seen_.begin < key + keys;
  }
  bool sees_all(std::int64_t key, std::int64_t keys) const {
    return seen_by_all_.begin <= key && key + keys <= seen_by_all_.end;
  }
  /// S becomes -inf where band and lengths hide a pair.
  void hide(std::int64_t key, std::int64_t keys, float* S) const;

 private:
  QueryRows rows_;
  std::int64_t first_, count_, lanes_;
  std::array<KeySpan, kMostLanes> spans_{};
  KeySpan seen_{}, seen_by_all_{};
};

/// Makes the scores of a batch entry.
class PanelScores {
 public:
  PanelScores(const attest_problem& problem, const Batch& batch, const attest_tensor* bias);

  /// Floats of `rows` below for tiles of so many keys and lanes.
  static std::int64_t row_floats(std::int64_t keys, std::int64_t lanes = kPanelLanes) {
    return 2 * lanes * keys;
  }

  /// S(keys, lanes) = log2(e) (scores of the panel's queries, packed Qt, and rows K of keys from
  /// `key` on, both in pairs where K is), -inf where hidden. With a softcap and `slope` not null,
  /// slope(keys, lanes) gets its derivative.
  void operator()(const QueryPanel& panel, const float* Qt, const RowsView& K, std::int64_t key,
                  std::int64_t keys, float* rows, float* S, float* slope) const;

 private:
  void finish_rows(const QueryPanel& panel, std::int64_t key, std::int64_t keys, float* rows,
                   float* S, float* slope) const;

  const attest_problem& problem_;
  Batch batch_;
  const attest_tensor* bias_;
  bool is_plain_;  // scaled, and hidden by band and lengths alone
};

}  // namespace attest::cpu
