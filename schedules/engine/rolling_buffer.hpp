#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <vector>

#include "io/machine/slow_memory.hpp"
#include "schedules/walks/demanded_rows.hpp"

namespace attest::schedules {

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
/// Or, on demand, any rows, that enter and leave as they are told.
/// Row has enter(range of one row) and leave(), on demand enter_again(range) as well.
/// [schedules/bands/rolling_visits_test "a rolling buffer", "a buffer on demand"]
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

  /// On demand, instead of roll_to.
  void move(const std::vector<RowMove>& moves) {
    slots_.resize(at(count_), RowMove::kNobody);
    for (const RowMove& one : moves) {
      Row& row = rows_[one.slot];
      if (one.leaves != RowMove::kNobody) leave(one.leaves);
      slots_[at(one.enters)] = one.slot;
      const io::Range range{one.enters, one.enters + 1};
      if (one.again) {
        row.enter_again(range);
      } else {
        row.enter(range);
      }
    }
  }

  /// On demand, instead of finish: those that are in leave, and those that nobody demanded pass
  /// through.
  void finish_moves() {
    slots_.resize(at(count_), RowMove::kNobody);
    for (std::int64_t row = 0; row < count_; ++row) {
      if (slots_[at(row)] >= 0) leave(row);
    }
    for (std::int64_t row = 0; row < count_; ++row) {
      if (slots_[at(row)] != RowMove::kNobody) continue;
      rows_[0].enter({row, row + 1});
      rows_[0].leave();
    }
  }

  /// Requires: the row is in.
  Row& operator[](std::int64_t row) {
    return rows_[slots_.empty() ? row % length_ : slots_[at(row)]];
  }

 private:
  static constexpr std::int64_t kGone = -2;  // was in; kNobody: never was

  static std::size_t at(std::int64_t row) { return static_cast<std::size_t>(row); }

  void leave(std::int64_t row) {
    rows_[slots_[at(row)]].leave();
    slots_[at(row)] = kGone;
  }

  std::int64_t length_, count_, entered_ = 0;
  std::vector<std::int64_t> slots_;  // of each row, on demand
  HeldRows<Row> rows_;
};

}  // namespace attest::schedules
