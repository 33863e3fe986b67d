#include <vector>

#include "core/dtype/dtype.hpp"
#include "gpu/simt/memory/traffic.hpp"
#include "gpu/simt/tensor_core/tensor_core.cuh"
#include "gpu/simt/testing/seeded_bugs.hpp"

namespace attest::simt {
namespace {

// "shows: …" names the bugs that are found at the line below.
constexpr int kRows = 16, kColumns = 8, kInner = 32, kStep = 16;
constexpr int kStride = 40;  // of a row in shared memory: a multiple of eight elements

// C = A B for A (16, 32) and B (32, 8) of bf16, by one warp.
__global__ void multiply(SeededBug bug, GlobalPointer<const std::uint16_t> A,
                         GlobalPointer<const std::uint16_t> B, GlobalPointer<float> C) {
  Counted mem(Counted::Sink{});
  ATTEST_SHARED(std::uint16_t, rows_a, [kRows * kStride]);
  ATTEST_SHARED(std::uint16_t, rows_b, [kInner * kStride]);
  const int lane = static_cast<int>(threadIdx.x);
  for (int k = lane; k < kRows * kInner; k += 32) {
    // shows: no_barrier_before_ldmatrix
    rows_a[k / kInner * kStride + k % kInner] = mem.load(A, k);
  }
  for (int k = lane; k < kInner * kColumns; k += 32) {
    // shows: no_barrier_before_ldmatrix
    rows_b[k / kColumns * kStride + k % kColumns] = mem.load(B, k);
  }
  if (bug != SeededBug::no_barrier_before_ldmatrix) __syncwarp();
  float c[4] = {};
  for (int first = 0; first < kInner; first += kStep) {
    unsigned a[4], b[2];
    const int odd = bug == SeededBug::odd_row_address ? 1 : 0;
    const std::uint16_t* const row_a = rows_a + lane % 16 * kStride + first + lane / 16 * 8 + odd;
    const std::uint16_t* const row_b = rows_b + (first + lane % 16) * kStride;
    // shows: no_barrier_before_ldmatrix, odd_row_address
    ldmatrix_x4(a, row_a);
    if (bug == SeededBug::swapped_fragments) {
      const unsigned other = a[1];
      a[1] = a[2];
      a[2] = other;
    }
    if (bug == SeededBug::not_transposed) {
      ldmatrix_x2(b, row_b);
    } else {
      // shows: no_barrier_before_ldmatrix
      ldmatrix_x2_trans(b, row_b);
    }
    mma_m16n8k16_bf16(c, a, b, c);
  }
  for (int k = 0; k < 4; ++k) {
    const int row = lane / 4 + k / 2 * 8, column = lane % 4 * 2 + k % 2;
    mem.store(C, row * kColumns + column, c[k]);
  }
}

}  // namespace

SeededRun run_products(SeededBug bug, const Emulation& emulation) {
  std::vector<float> a(kRows * kInner), b(kInner * kColumns);  // small whole numbers: exact
  for (std::size_t k = 0; k < a.size(); ++k) a[k] = static_cast<float>(k * k % 13) - 6;
  for (std::size_t k = 0; k < b.size(); ++k) b[k] = static_cast<float>(k * k % 17) - 8;
  std::vector<std::uint16_t> bits_a, bits_b;
  for (const float value : a) bits_a.push_back(bf16_from_float(value));
  for (const float value : b) bits_b.push_back(bf16_from_float(value));
  std::vector<float> product(kRows * kColumns), expected(product.size());
  for (std::size_t k = 0; k < expected.size() * kInner; ++k) {
    const std::size_t inner = k % kInner, column = k / kInner % kColumns,
                      row = k / kInner / kColumns;
    expected[row * kColumns + column] += a[row * kInner + inner] * b[inner * kColumns + column];
  }
  GlobalMemory memory;
  const auto in_a = memory.add("A", static_cast<const std::uint16_t*>(bits_a.data()),
                               static_cast<std::int64_t>(bits_a.size()));
  const auto in_b = memory.add("B", static_cast<const std::uint16_t*>(bits_b.data()),
                               static_cast<std::int64_t>(bits_b.size()));
  const auto out = memory.add("C", product.data(), static_cast<std::int64_t>(product.size()));
  SeededRun result;
  result.report =
      launch({{1, 1, 1}, {32, 1, 1}, 0}, emulation, memory, multiply, bug, in_a, in_b, out);
  result.right = product == expected;
  return result;
}

}  // namespace attest::simt
