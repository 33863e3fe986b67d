#pragma once

#include <cstdint>

#include "core/problem.hpp"

namespace attest::io {

/// Facts that the lower bounds know of a problem: sizes, and how many keys the rows see (condition
/// K4: with one visible key P = 1 and O = V_j, so such a row needs neither its query nor the key).
///
/// The query heads that share one K/V head are rows of one attention matrix; batch entries and K/V
/// heads add.
struct Extent {
  std::int64_t rows = 0;  // query rows
  std::int64_t keys = 0;  // keys that exist
  std::int64_t head_dim_qk = 1;
  std::int64_t head_dim_v = 1;
  std::int64_t pairs = 0;         // visible pairs of rows with at least two visible keys: Z
  std::int64_t all_pairs = 0;     // pairs of a row and a key that exist, visible or not
  std::int64_t rows_many = 0;     // rows with at least two visible keys
  std::int64_t rows_one = 0;      // rows with exactly one
  std::int64_t columns_many = 0;  // keys that a row with at least two visible keys sees
  std::int64_t columns_seen = 0;  // keys that any row sees

  std::int64_t rows_seeing() const { return rows_many + rows_one; }

  friend bool operator==(const Extent&, const Extent&) = default;
};

/// Sizes and visible pairs of all heads and batch entries of the problem.
///
/// Requires: a valid problem. Else throws InvalidProblem; also when a count exceeds 2^63 - 1.
/// Ensures:  what counting the visible pairs one by one gives  [io/bounds/extent_test "brute
/// force"] Cost:     linear in the sequence lengths; in the number of pairs with a boolean mask.
Extent extent_of(const Problem& problem);

/// One head without a mask.
///
/// Requires: every size at least 1. Else throws InvalidProblem.
Extent dense_extent(std::int64_t seqlen_q, std::int64_t seqlen_k, std::int64_t head_dim_qk,
                    std::int64_t head_dim_v);

}  // namespace attest::io
