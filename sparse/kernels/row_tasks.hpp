#pragma once

#include <cstdint>
#include <vector>

#include "cpu/kernels/geometry.hpp"
#include "sparse/kernels/tasks.hpp"

namespace attest::sparse {

/// What one task takes: enough that taking a task costs little, and of uneven rows so few that a
/// thread with the last task keeps the others waiting for these pairs and those of one row at most.
inline constexpr std::int64_t kRowsOfTask = 16, kPairsOfTask = 1024;

/// body(row) for the rows of a task.
template <class Body>
void for_rows_of(const Task& task, const Body& body) {
  for (std::int64_t row = task.part; row < task.part + task.rows; ++row) body(row);
}

/// Tasks for length(batch) rows of every head and batch entry, of which one takes
/// 1 + work(batch, row): a task ends at kRowsOfTask rows or where it has kPairsOfTask.
/// [sparse/kernels/tiles_test "rows are cut by their pairs"]
template <class Length, class Work>
std::vector<Task> row_tasks(const attest_problem& problem, std::int64_t heads, const Length& length,
                            const Work& work) {
  std::vector<Task> tasks;
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    const cpu::Batch batch = cpu::batch_of(problem, b);
    for (std::int64_t row = 0; row < length(batch);) {
      Task task{b, 0, row, 0, 0};
      while (row < length(batch) && task.rows < kRowsOfTask && task.work < kPairsOfTask) {
        task.work += 1 + work(batch, row++);
        ++task.rows;
      }
      for (task.head = 0; task.head < heads; ++task.head) tasks.push_back(task);
    }
  }
  return tasks;
}

}  // namespace attest::sparse
