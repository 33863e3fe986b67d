#pragma once

#include "gpu/simt/async/tensor_copy.cuh"
#include "gpu/simt/tensor_core/warpgroup.cuh"
#include "gpu/simt/testing/pipeline_bugs.hpp"

/// C = A B^T of bf16 in float32, for A (rows, inner), B (columns, inner) and C (rows, columns): a
/// warp brings tiles by tensor copies, a warpgroup multiplies those that have come.
///
/// "shows: …" names the bugs that are found at the line below.
namespace attest::simt {
inline namespace ATTEST_SIMT_WORLD {

struct PipelinedTiles {
  static constexpr int kRows = 64, kColumns = 32, kInner = 64, kStages = 2;
  static constexpr int kConsumers = 128, kLanes = kConsumers + 32;
  static constexpr int kBytesA = kRows * kInner * 2, kBytesB = kColumns * kInner * 2;
  static constexpr int kBytesC = kRows * kColumns * 4;
  static constexpr int kSharedBytes = kStages * (kBytesA + kBytesB) + kBytesC;
};

template <class Mem, PipelineBug bug>
__global__ void __launch_bounds__(PipelinedTiles::kLanes)
    pipelined_product(const __grid_constant__ TensorMap A, const __grid_constant__ TensorMap B,
                      const __grid_constant__ TensorMap C, int tiles, typename Mem::Sink sink) {
  using T = PipelinedTiles;
  Mem mem(sink);
  ATTEST_DYNAMIC_SHARED(unsigned char, bytes);
  ATTEST_SHARED(std::uint64_t, full, [T::kStages]);
  ATTEST_SHARED(std::uint64_t, empty, [T::kStages]);
  unsigned char* const tiles_a = bytes + (bug == PipelineBug::misaligned_box ? 64 : 0);
  unsigned char* const tiles_b = bytes + T::kStages * T::kBytesA;
  unsigned char* const tile_c = tiles_b + T::kStages * T::kBytesB;
  const int lane = static_cast<int>(threadIdx.x), warp = lane / 32;
  const int first_row = static_cast<int>(blockIdx.y) * T::kRows;
  const int first_column = static_cast<int>(blockIdx.x) * T::kColumns;
  if (lane == 0) {
    for (int stage = 0; stage < T::kStages; ++stage) {
      mbarrier_init(&full[stage], 1);
      if (bug != PipelineBug::no_init) mbarrier_init(&empty[stage], T::kConsumers);
    }
    if (bug != PipelineBug::no_init_fence) fence_mbarrier_init();
    if (bug == PipelineBug::plain_barrier) {
      // shows: plain_barrier
      if (full[0] == 0) return;
    }
  }
  if (bug != PipelineBug::no_barrier_after_init) __syncthreads();
  if (lane == T::kConsumers) {
    for (int tile = 0; tile < tiles; ++tile) {
      const int stage = tile % T::kStages;
      const auto before = static_cast<unsigned>(tile / T::kStages + 1) % 2;
      if (tile >= T::kStages && bug != PipelineBug::no_wait_for_readers) {
        // shows: never_released, no_init, no_barrier_after_init
        mbarrier_wait(&empty[stage], before);
      }
      const int more = bug == PipelineBug::expects_too_much     ? T::kInner * 2
                       : bug == PipelineBug::expects_too_little ? -T::kBytesB
                                                                : 0;
      const auto expected = static_cast<unsigned>(T::kBytesA + T::kBytesB + more);
      // shows: expects_too_much, no_barrier_after_init, no_wait_for_readers
      mbarrier_arrive_expect_tx(&full[stage], expected);
      unsigned char* const to_a = tiles_a + stage * T::kBytesA;
      unsigned char* const to_b = tiles_b + stage * T::kBytesB;
      // shows: no_init_fence, misaligned_box, no_wait_for_readers, early_release,
      // no_barrier_after_init, expects_too_little
      cp_async_bulk_tensor_2d(to_a, mem, A, tile * T::kInner, first_row, &full[stage]);
      // shows: no_init_fence, no_wait_for_readers, early_release, no_barrier_after_init,
      // expects_too_little
      cp_async_bulk_tensor_2d(to_b, mem, B, tile * T::kInner, first_column, &full[stage]);
    }
  }
  if (lane < T::kConsumers) {
    float d[T::kColumns / 2] = {};
    for (int tile = 0; tile < tiles; ++tile) {
      const int stage = tile % T::kStages;
      const auto late = bug == PipelineBug::wrong_parity ? 1 : 0;
      const auto parity = static_cast<unsigned>(tile / T::kStages + late) % 2;
      if (bug != PipelineBug::no_wait_for_tiles) {
        // shows: no_barrier_after_init, never_released
        mbarrier_wait(&full[stage], parity);
      }
      const bool fences = bug != PipelineBug::no_product_fence &&
                          (bug != PipelineBug::scaled_without_fence || tile == 0);
      // shows: warp_missing
      if (fences) wgmma_fence();
      for (int k = 0; k < T::kInner; k += 16) {
        // Eight rows of 128 bytes are one piece of the swizzle, 1024 bytes from the next.
        const auto a =
            matrix_descriptor(tiles_a + stage * T::kBytesA + 2 * k, 16, 1024, Swizzle::bytes_128);
        const auto b =
            matrix_descriptor(tiles_b + stage * T::kBytesB + 2 * k, 16, 1024, Swizzle::bytes_128);
        // shows: no_wait_for_tiles, wrong_parity, no_product_fence, scaled_without_fence
        wgmma_bf16<T::kColumns, Major::k, Major::k>(d, a, b, true);
      }
      // Two places are the point.
      if (bug == PipelineBug::warps_apart && warp == 3) {  // NOLINT(bugprone-branch-clone)
        // shows: warps_apart
        wgmma_commit();
      } else {
        // shows: warps_apart
        wgmma_commit();
      }
      if (bug == PipelineBug::early_accumulators && tile == tiles - 1) {
        // shows: early_accumulators
        d[3] += 1;
      }
      if (bug == PipelineBug::overwritten_tile && lane == 5) {
        // shows: overwritten_tile
        tiles_a[stage * T::kBytesA] = 0;
      }
      if (bug == PipelineBug::early_release) mbarrier_arrive(&empty[stage]);
      if (bug != PipelineBug::warp_missing || warp != 3) {
        // shows: warp_missing
        wgmma_wait<0>();
      }
      if (bug == PipelineBug::scaled_without_fence) d[3] *= 2;
      if (bug != PipelineBug::early_release && bug != PipelineBug::never_released) {
        // shows: no_init, no_barrier_after_init
        mbarrier_arrive(&empty[stage]);
      }
    }
    float* const c = reinterpret_cast<float*>(tile_c);
    for (int k = 0; k < T::kColumns / 2; ++k) {
      const int row = lane / 4 % 8 + 16 * warp + k / 2 % 2 * 8;
      const int column = k / 4 * 8 + lane % 4 * 2 + k % 2;
      c[row * T::kColumns + column] = d[k];
    }
    if (bug != PipelineBug::no_async_fence) fence_proxy_async();
  }
  // shows: never_released
  __syncthreads();
  if (lane == 0) {
    // shows: no_async_fence, no_wait_for_store
    cp_async_bulk_tensor_2d_store(mem, C, first_column, first_row, tile_c);
    cp_async_bulk_commit();
    if (bug == PipelineBug::overwritten_store) {
      // shows: overwritten_store
      reinterpret_cast<float*>(tile_c)[5] = 0;
    }
    if (bug != PipelineBug::no_wait_for_store) cp_async_bulk_wait_read<0>();
  }
  mem.flush();
}

}  // namespace ATTEST_SIMT_WORLD
}  // namespace attest::simt
