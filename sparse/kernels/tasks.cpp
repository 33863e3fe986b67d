#include "sparse/kernels/tasks.hpp"

#include <omp.h>

#include <algorithm>

namespace attest::sparse {

void run_longest_first(std::vector<Task> tasks, std::int32_t threads,
                       const std::function<void(const Task&, int thread)>& body) {
  std::stable_sort(tasks.begin(), tasks.end(),
                   [](const Task& a, const Task& b) { return a.work > b.work; });
  const auto count = static_cast<std::int64_t>(tasks.size());
#pragma omp parallel for schedule(dynamic) num_threads(std::max(threads, 1))
  for (std::int64_t k = 0; k < count; ++k) {
    body(tasks[static_cast<std::size_t>(k)], omp_get_thread_num());
  }
}

}  // namespace attest::sparse
