#pragma once

#include "schedules/engine/rolling_buffer.hpp"
#include "schedules/walks/lists/row_order.hpp"

namespace attest::schedules {

/// The rows of a block that do not follow each other: each has tiles of its own. Row(range, …)
/// takes them from a machine and keeps them as long as it lives.
template <class Row>
class GatheredRows {
 public:
  /// Requires: the words of the order at these places in fast memory.
  template <class... Arguments>
  GatheredRows(const RowOrder& order, io::Range places, const Arguments&... arguments) {
    for (std::int64_t place = places.begin; place < places.end; ++place) {
      rows_.add(order.row(place), arguments...);
    }
  }

  template <class Body>
  void for_each(const Body& body) {
    rows_.for_each(body);
  }

 private:
  HeldRows<Row> rows_;
};

}  // namespace attest::schedules
