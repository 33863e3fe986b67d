#pragma once

#include <string>
#include <vector>

#include "gpu/kernels/emulated/fast_memory.hpp"
#include "gpu/kernels/tiles/grid.hpp"
#include "gpu/simt/launch.hpp"

/// The launches of a call without making them.
namespace attest::gpu {

/// Tells whether a device takes so many blocks, and the emulated one so much shared memory.
bool fits(const BlockLine& line, const simt::Emulation& emulation);

struct PlannedLaunch {
  std::string kernel;
  BlockLine line;

  /// Returns the fast memory of a block, with the policy Uncounted. Throws InvalidProblem for a
  /// kernel that is not declared.  [gpu/kernels/bounds_test "declares its registers"]
  FastMemory fast_memory() const {
    return {line.dynamic_shared_bytes + line.static_shared_bytes, line.lanes,
            declared_thread_memory(kernel)};
  }
};

/// Takes launches in the place of a device or the emulation: plan(name, line, kernel,
/// arguments...).
class LaunchPlan {
 public:
  template <class Kernel, class... Arguments>
  void operator()(const std::string& name, const BlockLine& line, const Kernel&,
                  const Arguments&...) {
    launches_.push_back({name, line});
  }
  const std::vector<PlannedLaunch>& launches() const { return launches_; }

  /// All of them.
  bool fits(const simt::Emulation& emulation) const;

  /// The most that a block of any launch has.
  FastMemory fast_memory() const;

 private:
  std::vector<PlannedLaunch> launches_;
};

}  // namespace attest::gpu
