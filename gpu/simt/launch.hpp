#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "gpu/simt/block.hpp"

namespace attest::simt {

struct LaunchShape {
  Index3 grid{1, 1, 1}, block{1, 1, 1};
  std::int64_t dynamic_shared_bytes = 0;
};

/// What a launch found and took.
struct LaunchReport {
  std::vector<Diagnosis> diagnoses;  // ascending by block; at most those asked for
  std::int64_t shared_bytes = 0;     // the most of any block, static and dynamic
  std::uint64_t switches = 0;        // between lanes
  // By tensor, in the order in which they were added to the global memory.
  std::vector<GlobalTraffic> traffic;

  /// What a later launch of the same tensors adds.
  LaunchReport& operator+=(const LaunchReport& later);

  /// All diagnoses, one to a line.
  std::string to_string() const;
};

/// Runs a kernel's body once for each lane of each block. A block that is given up leaves the
/// others alone. With one thread, blocks run one after the other in the order of the emulation.
///
/// Requires: extents of at least 1, at most 1024 lanes a block. Else throws InvalidProblem.
///           [gpu/simt/launch_test]
LaunchReport launch_blocks(const LaunchShape& shape, const Emulation& emulation,
                           const GlobalMemory& global, const std::function<void()>& kernel);

/// `kernel<<<shape>>>(arguments...)` on the host.
template <class Kernel, class... Arguments>
LaunchReport launch(const LaunchShape& shape, const Emulation& emulation,
                    const GlobalMemory& global, Kernel&& kernel, const Arguments&... arguments) {
  return launch_blocks(shape, emulation, global, [&] { kernel(arguments...); });
}

}  // namespace attest::simt
