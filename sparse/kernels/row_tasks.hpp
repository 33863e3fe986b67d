#pragma once

#include <cstdint>
#include <vector>

#include "sparse/kernels/tasks.hpp"

namespace attest::sparse {

/// Rows and pairs of a task of single pairs: enough that taking a task costs little, and of uneven
/// rows so few that a thread with the last task keeps the others waiting for these pairs and those
/// of one row at most.
inline constexpr std::int64_t kRowsOfTask = 16, kPairsOfTask = 1024;

/// Appends tasks for the rows of one tile, of which each takes 1 + work(row) beside what `tile`
/// says: one task, or, where `tile` is single, as many as cut it after kRowsOfTask rows or where a
/// task has kPairsOfTask; the same for every head.  [sparse/kernels/tiles_test "rows are cut by
/// their pairs"]
template <class Work>
void append_tasks(const Task& tile, std::int64_t heads, const Work& work,
                  std::vector<Task>& tasks) {
  const std::int64_t end = tile.rows.first + tile.rows.count;
  for (std::int64_t row = tile.rows.first; row < end;) {
    Task task = tile;
    task.rows = {row, 0};
    const auto is_full = [&task] {
      return task.is_single && (task.rows.count == kRowsOfTask || task.work >= kPairsOfTask);
    };
    while (row < end && !is_full()) {
      task.work += 1 + work(row++);
      ++task.rows.count;
    }
    for (task.head = 0; task.head < heads; ++task.head) tasks.push_back(task);
  }
}

}  // namespace attest::sparse
