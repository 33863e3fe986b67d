#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "io/machine/machine.hpp"
#include "schedules/engine/head.hpp"
#include "schedules/engine/parameter.hpp"
#include "schedules/walks/lists/tile_list.hpp"

namespace attest::schedules {

/// Queries in another order, as a permutation in slow memory: blocks of it hold queries that share
/// keys. Or keys, whose blocks share queries.
class RowOrder {
 public:
  /// Groups of `block` queries: the first begins with the first query left and takes, one by one,
  /// the query left that shares most keys with those taken; of several the one that adds fewest,
  /// then the first. Keys likewise. A problem without a boolean mask keeps its order.
  ///
  /// Cost: time q^2 (q^2 / block where queries of a group share all their keys), and for each group
  ///       the visible pairs of its keys; none with block = 1.
  /// [schedules/walks/lists/row_order_test "rule"]
  static RowOrder grouped(const ScoreRule& rule, std::int64_t q, std::int64_t k, std::int64_t block,
                          Stay of);

  /// The row at a place, as a range of one.
  io::Range row(std::int64_t place) const {
    const std::int64_t row = order_[static_cast<std::size_t>(place)];
    return {row, row + 1};
  }
  const std::vector<std::int64_t>& rows() const { return order_; }

  /// The words that say so: one for each row.
  io::SlowMatrix matrix() const {
    return {"row_order",
            static_cast<std::int64_t>(words_.size()),
            1,
            DType::f32,
            {words_.data(), 1, 1}};
  }

 private:
  explicit RowOrder(std::vector<std::int64_t> order)
      : order_(std::move(order)), words_(order_.size()) {}

  std::vector<std::int64_t> order_;
  std::vector<float> words_;  // four bytes each: only how many there are matters
};

}  // namespace attest::schedules
