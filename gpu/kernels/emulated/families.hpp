#pragma once

#include <functional>
#include <string>
#include <vector>

#include "gpu/kernels/emulated/emulated_kernel.hpp"

/// Kernels that are compiled for tiles of several sizes, to fit less fast memory.
namespace attest::gpu {

struct Variant {
  const EmulatedKernel* kernel;
  std::function<std::string(const AttentionShape&)> schedule;  // whose words it moves
};

/// The variants of one direction, largest tiles first.
struct Family {
  std::string name;
  std::uint32_t direction = 0;  // ATTEST_FORWARD, ATTEST_BACKWARD or ATTEST_LOSS_GRADIENT
  std::vector<Variant> variants;
};

/// flash2, square_tiled; two_pass, square_tiled_bwd; loss_large, loss_rows, loss_small.
const std::vector<Family>& families();

}  // namespace attest::gpu
