#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/sparsity/blocks_of.hpp"
#include "cpu/kernels/geometry.hpp"
#include "sparse/kernels/tasks.hpp"

namespace attest::sparse {

/// Consecutive rows that one task takes: enough that taking a task costs little.
inline constexpr std::int64_t kRowsOfTask = 16;

/// body(row) for the rows of a task in a sequence of so many.
template <class Body>
void for_rows_of(const Task& task, std::int64_t length, const Body& body) {
  const std::int64_t first = task.part * kRowsOfTask;
  for (std::int64_t row = first; row < std::min(first + kRowsOfTask, length); ++row) body(row);
}

/// A task for kRowsOfTask rows of every head and batch entry: length(batch) rows, of which one
/// takes 1 + work(batch, row).
template <class Length, class Work>
std::vector<Task> row_tasks(const attest_problem& problem, std::int64_t heads, const Length& length,
                            const Work& work) {
  std::vector<Task> tasks;
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    const cpu::Batch batch = cpu::batch_of(problem, b);
    for (std::int64_t part = 0; part < blocks_of(length(batch), kRowsOfTask); ++part) {
      Task task{b, 0, part, 0};
      for_rows_of(task, length(batch),
                  [&](std::int64_t row) { task.work += 1 + work(batch, row); });
      for (task.head = 0; task.head < heads; ++task.head) tasks.push_back(task);
    }
  }
  return tasks;
}

}  // namespace attest::sparse
