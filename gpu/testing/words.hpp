#pragma once

#include <cstdint>
#include <ostream>
#include <string>

#include "core/problem.hpp"
#include "gpu/kernels/emulated/emulated_kernel.hpp"
#include "gpu/kernels/emulated/moved_words.hpp"

/// Words of a kernel beside words of its schedule, for the tests of this room.
namespace attest::gpu {

inline std::ostream& operator<<(std::ostream& out, const MovedWords& words) {
  return out << words.reads << " + " << words.writes;
}

}  // namespace attest::gpu

namespace attest::gpu::testing {

/// Returns what float32 kernels moved, all tensors together.
MovedWords moved_words(const simt::GlobalMemory& memory, const simt::LaunchReport& report);

/// Returns what the schedule moves, counted by walking through it.
MovedWords counted_words(const std::string& schedule, const Problem& problem);

/// The schedule that a kernel's forward keeps to on a problem without a sparsity pattern: the one
/// it names, or flash2 for a kernel that names block_flash2.
std::string dense_schedule(const EmulatedKernel& kernel);

/// Returns what a kernel saves whose key blocks serve all query heads of their group: K and V are
/// read once for the group, and dK and dV are not left in slow memory from head to head. Tiles are
/// those of the key blocks.
MovedWords group_savings(const Problem& problem, std::int64_t block_q, std::int64_t block_k);

}  // namespace attest::gpu::testing
