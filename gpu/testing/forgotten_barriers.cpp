#include "gpu/testing/forgotten_barriers.hpp"

#include <vector>

#include "gpu/kernels/tile.cuh"

#define __syncthreads() static_cast<void>(0)  // NOLINT(bugprone-reserved-identifier): forgotten
#include "gpu/kernels/backward_lines.cuh"
#include "gpu/kernels/key_stationary.cuh"
#include "gpu/kernels/loss.cuh"

namespace attest::gpu::testing {
namespace {

// A type of its own: what is made of it is not mistaken for the kernels that have their barriers.
struct Forgetful : BackwardTile<1, 1, 32> {};
struct PanelsForgotten : PanelsPass {};

void square_product(ProductArguments<simt::Counted> a) {
  simt::Counted mem(a.sink);
  ATTEST_SHARED(float, panels, [SquareTile::kPanels]);
  const SquarePlace place{0, 0, SquareTile::kSide, SquareTile::kSide};
  float sums[SquareTile::kRows] = {};
  add_product(mem, a.A, a.B, place, a.inner, panels, sums, PanelsForgotten{});
  for_elements(place, [&](int r, std::int64_t i, std::int64_t j) {
    mem.store(a.C.data, a.C.at(i, j), sums[r]);
  });
}

}  // namespace

simt::LaunchReport key_stationary_without_barriers(const EmulatedBackward& call,
                                                   const simt::Emulation& emulation) {
  return launch_line(key_line(Forgetful{}, call.arguments.shape), emulation, call.memory,
                     key_stationary_keys<Forgetful, simt::Counted>, call.arguments);
}

simt::LaunchReport square_product_without_barriers(const simt::Emulation& emulation) {
  constexpr std::int64_t kSide = 64;
  std::vector<float> A(kSide * kSide, 1), C(kSide * kSide);
  simt::GlobalMemory memory;
  ProductArguments<simt::Counted> task;
  task.A = task.B = {memory.add<const float>("A", A.data(), kSide * kSide), 0, kSide, 1};
  task.C = {memory.add("C", C.data(), kSide * kSide), 0, kSide, 1};
  task.rows = task.columns = task.inner = kSide;
  return launch_line({1, SquareTile::kLanes, 0}, emulation, memory, square_product, task);
}

}  // namespace attest::gpu::testing
