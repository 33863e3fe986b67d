#include "gpu/testing/forgotten_barriers.hpp"

#include <vector>

#include "gpu/kernels/tiles/tile.cuh"

#define __syncthreads() static_cast<void>(0)  // NOLINT(bugprone-reserved-identifier): forgotten
#include "gpu/kernels/block_flash2/listed_tiles.cuh"
#include "gpu/kernels/key_stationary/key_stationary.cuh"
#include "gpu/kernels/loss/loss.cuh"
#include "gpu/kernels/tiles/backward_lines.cuh"

namespace attest::gpu::testing {
namespace {

// A type of its own: what is made of it is not mistaken for the kernels that have their barriers.
struct Forgetful : BackwardTile<32, 1, 1, 32> {};
struct PanelsForgotten : PanelsPass {};
using Tile = SquareTile<32>;

void square_product(ProductArguments<simt::Counted> a) {
  simt::Counted mem(a.sink);
  ATTEST_SHARED(float, panels, [Tile::kPanels]);
  const SquarePlace place{0, 0, Tile::kSide, Tile::kSide};
  SquareSums<Tile> sums = {};
  add_product<Tile>(mem, a.A, a.B, place, a.inner, panels, sums, PanelsForgotten{});
  for_elements<Tile>(place, sums, panels, [&](std::int64_t i, std::int64_t j, float sum) {
    mem.store(a.C.data, a.C.at(i, j), sum);
  });
}

// Tiles of 16 keys, which no kernel with lists has.
void listed_walk(ForwardArguments<simt::Counted> a) {
  simt::Counted mem(a.sink);
  const QueryBlock block = query_block(mem, a.shape, a.mask, blockIdx.x, 32);
  auto tiles = ListedTiles::keys<32, 16>(mem, a.shape, a.mask, block.sequence, block.rows);
  const int row = static_cast<int>(threadIdx.x) % 32;
  int seen = 0;
  TileRows keys;
  for (int tile = 0; tile < 4 && tiles.next(mem, keys); ++tile) seen += tiles.shows(row, 0) ? 1 : 0;
  if (threadIdx.x == 0) mem.store(a.LSE, 0, static_cast<float>(seen));
}

}  // namespace

simt::LaunchReport listed_walk_without_barriers(const EmulatedForward& call,
                                                const simt::Emulation& emulation) {
  return launch_line({1, 64, 0, sizeof(ListedTile)}, emulation, call.memory, listed_walk,
                     call.arguments);
}

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
  return launch_line({1, Tile::kLanes, 0}, emulation, memory, square_product, task);
}

}  // namespace attest::gpu::testing
