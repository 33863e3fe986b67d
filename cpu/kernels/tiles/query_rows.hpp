#pragma once

#include <algorithm>
#include <cstdint>

#include "cpu/kernels/tiles/geometry.hpp"

namespace attest::cpu {

/// Queries that are worked on together: consecutive ones of one head, or those of all heads of a
/// group, head after head, which read the same keys.
class QueryRows {
 public:
  /// `first`: counted from the first query of `head` on, through the heads.
  QueryRows(const Batch& batch, std::int64_t head, std::int64_t first, std::int64_t count)
      : head_(head), length_(batch.q_length), first_(first), count_(count) {}

  std::int64_t count() const { return count_; }
  std::int64_t head(std::int64_t row) const { return head_ + (first_ + row) / length_; }
  std::int64_t query(std::int64_t row) const { return (first_ + row) % length_; }

  /// visit(head, first query, rows, first of them) for the runs of one head among `count` rows from
  /// `row` on.
  template <class Visit>
  void for_runs(std::int64_t row, std::int64_t count, const Visit& visit) const {
    const std::int64_t end = row + count;
    for (std::int64_t r = row; r < end;) {
      const std::int64_t run = std::min(end - r, length_ - query(r));
      visit(head(r), query(r), run, r);
      r += run;
    }
  }

 private:
  std::int64_t head_, length_, first_, count_;
};

}  // namespace attest::cpu
