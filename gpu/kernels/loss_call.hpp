#pragma once

#include "core/abi/attest_kernel.h"
#include "gpu/kernels/loss.cuh"
#include "gpu/simt/launch.hpp"

/// From the ABI's arguments to those of the emulated loss gradients.
namespace attest::gpu {

/// Whether the (n, n) matrix S is part of the workspace.
enum class LossScores : std::uint8_t { stored, passing };

/// Arguments with the tensors they may touch, by name. Launches refer to the memory, so it outlives
/// them.
struct EmulatedLoss {
  using Mem = simt::Counted;

  EmulatedLoss(const attest_loss_args& args, LossScores scores);
  EmulatedLoss(const EmulatedLoss&) = delete;
  EmulatedLoss& operator=(const EmulatedLoss&) = delete;

  simt::GlobalMemory memory;
  LossArguments<Mem> arguments;
};

std::size_t loss_workspace_bytes(const attest_problem& problem, LossScores scores);

/// One head of one batch entry, square, float32.
bool loss_claimed(const attest_problem& problem);

/// A kernel of the loss gradient but for its functions and schedule.
attest_kernel loss_kernel(const char* name, const char* summary);

}  // namespace attest::gpu
