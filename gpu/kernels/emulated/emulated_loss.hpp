#pragma once

#include "core/abi/attest_kernel.h"
#include "gpu/kernels/emulated/emulated.hpp"
#include "gpu/kernels/loss/loss.cuh"

/// From the ABI's arguments to those of the emulated loss gradients.
namespace attest::gpu {

/// Arguments with the tensors they may touch, by name. Launches refer to the memory, so it outlives
/// them. QX, h, c, W, Z, LSE and D begin the workspace, loss_words() of it.
struct EmulatedLoss {
  using Mem = simt::Counted;

  explicit EmulatedLoss(const attest_loss_args& args);
  EmulatedLoss(const EmulatedLoss&) = delete;
  EmulatedLoss& operator=(const EmulatedLoss&) = delete;

  /// Arguments for dX of such a shape, without tensors.
  static LossArguments<Mem> planned(const AttentionShape& shape) {
    LossArguments<Mem> a;
    a.n = shape.seqlen_q;
    a.d = shape.head_dim_qk;
    return a;
  }

  /// A packed matrix in the workspace.
  LossArguments<Mem>::Made take(const char* name, std::int64_t rows, std::int64_t columns) {
    return {workspace.take(memory, name, rows * columns), 0, columns, 1};
  }

  simt::GlobalMemory memory;
  LossArguments<Mem> arguments;
  Workspace workspace;
};

std::int64_t loss_words(const attest_problem& problem);

/// One head of one batch entry, square.
bool loss_claimed(const AttentionShape& shape);

}  // namespace attest::gpu
