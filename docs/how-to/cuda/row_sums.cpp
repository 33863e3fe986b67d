// A kernel with a mistake, run without a GPU. Built by gpu/CMakeLists.txt, told in
// docs/how-to/cuda-without-a-gpu.md.
#include <cstdio>
#include <vector>

#include "gpu/simt/launch.hpp"
#include "gpu/simt/memory/traffic.hpp"

namespace simt = attest::simt;

constexpr int kLanes = 64;

// sums[row] = the sum of a row of x: each lane a part, the first lane the rest.
template <class Mem>
__global__ void row_sums(typename Mem::template In<float> x, typename Mem::template Out<float> sums,
                         int columns, typename Mem::Sink sink) {
  Mem mem(sink);
  ATTEST_SHARED(float, partial, [kLanes]);
  const int lane = static_cast<int>(threadIdx.x), row = static_cast<int>(blockIdx.x);
  float sum = 0;
  for (int c = lane; c < columns; c += kLanes) sum += mem.load(x, row * columns + c);
  partial[lane] = sum;
  // __syncthreads() is missing.
  if (lane == 0) {
    for (int other = 1; other < kLanes; ++other) sum += partial[other];
    mem.store(sums, row, sum);
  }
}

int main() {
  constexpr int kRows = 3, kColumns = 100;
  std::vector<float> x(kRows * kColumns, 1.0F), sums(kRows);
  simt::GlobalMemory memory;
  const auto from = memory.add("x", static_cast<const float*>(x.data()), kRows * kColumns);
  const auto to = memory.add("sums", sums.data(), kRows);
  simt::Emulation emulation;
  emulation.order = simt::Order::descending;  // in this order the sums are right all the same
  emulation.shared_checks = simt::SharedChecks::on;
  emulation.most_diagnoses = 1;
  const simt::LaunchReport report =
      simt::launch({{kRows, 1, 1}, {kLanes, 1, 1}, 0}, emulation, memory, row_sums<simt::Counted>,
                   from, to, kColumns, simt::Counted::Sink{});
  std::printf("sums %g %g %g\n%s", sums[0], sums[1], sums[2], report.to_string().c_str());
  std::printf("x: %lld bytes read\n", static_cast<long long>(report.traffic[0].read_bytes));
  return report.diagnoses.empty() ? 0 : 1;
}
