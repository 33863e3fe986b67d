#include <vector>

#include "core/dtype/dtype.hpp"
#include "gpu/simt/async/mbarrier.cuh"
#include "gpu/simt/tensor_core/tensor_core.cuh"
#include "gpu/simt/tensor_core/warpgroup.cuh"
#include "gpu/simt/testing/seeded_bugs.hpp"

namespace attest::simt {
namespace {

// "shows: …" names the bugs that are found at the line below.
constexpr int kLanes = 128, kColumns = 8, kInner = 16, kProducts = 2;

// Each row of D is the sum of the columns of B, as often as there are products: A is one
// everywhere, in registers, B comes by plain writes.
__global__ void sum_columns(SeededBug bug, const float* columns, float* sums) {
  ATTEST_DYNAMIC_SHARED(std::uint16_t, b);
  const int lane = static_cast<int>(threadIdx.x);
  // Column by column in two matrices of 8 x 8, of k below 8 and of the others.
  const int column = lane % kColumns, k = lane / kColumns;
  b[k / 8 * 64 + column * 8 + k % 8] = bf16_from_float(columns[lane]);
  if (bug != SeededBug::no_fence_before_product) fence_proxy_async();
  __syncthreads();
  const auto matrix = matrix_descriptor(b, 128, 128, Swizzle::none);
  float d[kColumns / 2] = {};
  unsigned a[4] = {};
  const unsigned ones = cvt_bf16x2(1, 1);
  wgmma_fence();
  for (int product = 0; product < kProducts; ++product) {
    for (unsigned& words : a) {
      // shows: fragment_under_way
      words = ones;
    }
    const bool fences = bug != SeededBug::fragment_without_fence || product == 0;
    if (fences) wgmma_fence();
    // shows: no_fence_before_product, fragment_without_fence
    wgmma_bf16<kColumns, Major::k>(d, a, matrix, true);
    wgmma_commit();
    if (bug != SeededBug::fragment_under_way) wgmma_wait<0>();
  }
  wgmma_wait<0>();
  for (int n = 0; n < kColumns / 2; ++n) {
    const int row = lane / 32 * 16 + lane % 32 / 4 + n / 2 * 8;
    sums[row * kColumns + lane % 4 * 2 + n % 2] = d[n];
  }
}

}  // namespace

SeededRun run_fragments(SeededBug bug, const Emulation& emulation) {
  constexpr std::size_t kRows = 64, kWide = kColumns;
  std::vector<float> columns(kLanes), sums(kRows * kWide), expected(kRows * kWide);
  for (std::size_t n = 0; n < columns.size(); ++n) columns[n] = static_cast<float>(n * n % 19);
  for (std::size_t n = 0; n < expected.size() * kInner; ++n) {
    expected[n / kInner] += kProducts * columns[n % kInner * kWide + n / kInner % kWide];
  }
  SeededRun result;
  result.report = launch({{1, 1, 1}, {kLanes, 1, 1}, kInner * kColumns * 2}, emulation, {},
                         sum_columns, bug, columns.data(), sums.data());
  result.right = sums == expected;
  return result;
}

}  // namespace attest::simt
