#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>

#include "io/slow_memory.hpp"

namespace attest::cpu {

/// Rows with tiles of their own, in fast memory as long as this lives.
template <class Row>
class HeldRows {
 public:
  HeldRows() = default;
  /// The arguments go to each Row.
  template <class... Arguments>
  explicit HeldRows(std::int64_t count, const Arguments&... arguments) {
    for (std::int64_t row = 0; row < count; ++row) add(arguments...);
  }
  HeldRows(const HeldRows&) = delete;
  HeldRows& operator=(const HeldRows&) = delete;
  ~HeldRows() {
    while (!rows_.empty()) rows_.pop_back();  // fast memory is a stack
  }

  template <class... Arguments>
  void add(const Arguments&... arguments) {
    rows_.emplace_back(arguments...);
  }

  Row& operator[](std::int64_t row) { return rows_[static_cast<std::size_t>(row)]; }

  template <class Body>
  void for_each(const Body& body) {
    for (Row& row : rows_) body(row);
  }

 private:
  std::deque<Row> rows_;
};

/// `length` of `count` rows that follow each other: as a row enters, the one in its place leaves.
/// Row has enter(range of one row) and leave().
/// [cpu/schedules/rolling_visits_test "a rolling buffer"]
template <class Row>
class RollingBuffer {
 public:
  template <class... Arguments>
  RollingBuffer(std::int64_t length, std::int64_t count, const Arguments&... arguments)
      : length_(length), count_(count), rows_(length, arguments...) {}

  /// Rolls until `first` is the next to leave, or the last row is in.
  void roll_to(std::int64_t first) {
    const std::int64_t end = first + std::min(length_, count_ - first);
    for (; entered_ < end; ++entered_) {
      Row& row = (*this)[entered_];
      if (entered_ >= length_) row.leave();
      row.enter({entered_, entered_ + 1});
    }
  }

  /// The rows that are still outside roll through, and the last ones leave.
  void finish() {
    const std::int64_t first = count_ - std::min(length_, count_);
    roll_to(first);
    for (std::int64_t row = first; row < count_; ++row) (*this)[row].leave();
  }

  /// Requires: the row is in.
  Row& operator[](std::int64_t row) { return rows_[row % length_]; }

 private:
  std::int64_t length_, count_, entered_ = 0;
  HeldRows<Row> rows_;
};

}  // namespace attest::cpu
