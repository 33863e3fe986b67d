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

/// Report of what a launch found and took.
struct LaunchReport {
  std::vector<Diagnosis> diagnoses;  // ascending by block; at most those asked for
  std::int64_t blocks_given_up = 0;  // whose kernel did not come to its end
  std::int64_t shared_bytes = 0;     // the most of any block, static and dynamic
  std::uint64_t switches = 0;        // between lanes
  std::uint64_t instructions = 0;    // of warps, where PTX was executed
  // By tensor, in the order in which they were added to the global memory.
  std::vector<GlobalTraffic> traffic;

  /// Adds what a block moved.
  void add_traffic(const std::vector<GlobalTraffic>& moved);
  /// Adds the report of a later launch of the same tensors.
  LaunchReport& operator+=(const LaunchReport& later);

  /// Nothing was found, also of what `most_diagnoses` dropped, and every block came to its end.
  bool clean() const { return diagnoses.empty() && blocks_given_up == 0; }

  /// All diagnoses and how many blocks were given up, one to a line; empty when clean.
  std::string to_string() const;
};

/// Races of a read with a write: reported as they are, or only where what depends on the value
/// matters, which `run_block` tells GlobalRaces when the launch is run again from the same memory.
enum class LateReads : std::uint8_t { reported, judged };

/// Runs each block of a launch once, some at a time, in the order of the emulation, and adds up
/// their reports. A block that is given up leaves the others alone.
///
/// `run_block` gets the block's index, the emulation as the watch of this thread would have it, and
/// the launch's races in global memory, null without checks; it runs on several threads.
/// Requires: extents as launch_blocks.
using RunBlock = std::function<void(Index3 index, const Emulation& emulation, GlobalRaces* races,
                                    LaunchReport& report)>;
LaunchReport run_blocks(const LaunchShape& shape, const Emulation& emulation,
                        const GlobalMemory& global, const RunBlock& run_block,
                        LateReads late_reads = LateReads::reported);

/// Runs a kernel's body once for each lane of each block. A block that is given up leaves the
/// others alone. With one thread, blocks run one after the other in the order of the emulation.
///
/// Requires: extents that a device takes: a grid of 1 to 2^31 - 1, 65535 and 65535 blocks, a block
/// of
///           1 to 1024 lanes, 64 in z; dynamic_shared_bytes >= 0. Else throws InvalidProblem.
///           [gpu/simt/launch_test "shapes that no device takes"]
/// Throws InternalError when there is no memory for the stacks of the lanes.
LaunchReport launch_blocks(const LaunchShape& shape, const Emulation& emulation,
                           const GlobalMemory& global, const std::function<void()>& kernel);

/// `kernel<<<shape>>>(arguments...)` on the host.
template <class Kernel, class... Arguments>
LaunchReport launch(const LaunchShape& shape, const Emulation& emulation,
                    const GlobalMemory& global, Kernel&& kernel, const Arguments&... arguments) {
  return launch_blocks(shape, emulation, global, [&] { kernel(arguments...); });
}

}  // namespace attest::simt
