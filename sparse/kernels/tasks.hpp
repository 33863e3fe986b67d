#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace attest::sparse {

/// Rows first .. first + count - 1 of a sequence.
struct Rows {
  std::int64_t first, count;
};

/// A part of a call that writes rows of its own.
struct Task {
  std::int64_t batch, head, tile;
  Rows rows;          // of the tile: all, or some where they meet no tile
  std::int64_t work;  // in single pairs
  bool is_single;     // meets no tile
};

/// Runs body(task, thread) for every task on so many threads, the longest first, so that rows of
/// uneven length leave no thread waiting for another: no thread ends later than the shortest one by
/// more than the longest task (Graham 1969).
/// Requires: the body does not throw.  [sparse/kernels/tiles_test "the longest first"]
void run_longest_first(std::vector<Task> tasks, std::int32_t threads,
                       const std::function<void(const Task&, int thread)>& body);

}  // namespace attest::sparse
