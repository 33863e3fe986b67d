#pragma once

#include <cstdint>
#include <vector>

#include "io/machine/slow_memory.hpp"

namespace attest::schedules {

/// A slot of a buffer takes another row.
struct RowMove {
  static constexpr std::int64_t kNobody = -1;

  std::int64_t slot;
  std::int64_t leaves = kNobody;  // who was there
  std::int64_t enters = 0;
  bool again = false;  // it had been in the buffer before

  bool operator==(const RowMove&) const = default;
};

/// Returns the moves of a buffer of `slots` rows before each visit: needed rows that are not there
/// enter a free slot, or that of the row whose next need is the farthest (Belady 1966), so that as
/// few rows as possible enter again.
/// [schedules/walks/demanded_rows_test]
///
/// Requires: each visit needs at most `slots` rows, from 0 to rows - 1, as ascending ranges. Else
/// throws InternalError.
/// Cost:     time linear in the rows needed, and in the slots for each move.
std::vector<std::vector<RowMove>> moves_on_demand(const std::vector<std::vector<io::Range>>& needed,
                                                  std::int64_t slots, std::int64_t rows);

}  // namespace attest::schedules
