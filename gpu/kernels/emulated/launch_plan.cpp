#include "gpu/kernels/emulated/launch_plan.hpp"

#include <algorithm>

namespace attest::gpu {

bool fits(const BlockLine& line, const simt::Emulation& emulation) {
  return line.blocks <= kMostBlocks &&
         line.dynamic_shared_bytes + line.static_shared_bytes <= emulation.shared_bytes_limit;
}

bool LaunchPlan::fits(const simt::Emulation& emulation) const {
  return std::all_of(launches_.begin(), launches_.end(), [&](const PlannedLaunch& launch) {
    return gpu::fits(launch.line, emulation);
  });
}

FastMemory LaunchPlan::fast_memory() const {
  FastMemory most;
  for (const PlannedLaunch& launch : launches_) {
    const FastMemory memory = launch.fast_memory();
    if (memory.words() > most.words()) most = memory;
  }
  return most;
}

}  // namespace attest::gpu
