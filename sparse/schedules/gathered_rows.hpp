#pragma once

#include <deque>

#include "sparse/schedules/row_order.hpp"

namespace attest::sparse {

/// The rows of a block that do not follow each other: each has tiles of its own. Row(range, …)
/// takes them from a machine and keeps them as long as it lives.
template <class Row>
class GatheredRows {
 public:
  /// Requires: the words of the order at these places in fast memory.
  template <class... Arguments>
  GatheredRows(const RowOrder& order, io::Range places, const Arguments&... arguments) {
    for (std::int64_t place = places.begin; place < places.end; ++place) {
      rows_.emplace_back(order.row(place), arguments...);
    }
  }
  GatheredRows(const GatheredRows&) = delete;
  GatheredRows& operator=(const GatheredRows&) = delete;
  ~GatheredRows() {
    while (!rows_.empty()) rows_.pop_back();  // fast memory is a stack
  }

  template <class Body>
  void for_each(const Body& body) {
    for (Row& row : rows_) body(row);
  }

 private:
  std::deque<Row> rows_;
};

}  // namespace attest::sparse
