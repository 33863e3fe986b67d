#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/registry.hpp"

/// Emulated CUDA kernels as somebody looks on: orders of lanes and blocks, and what launches
/// report.
namespace attest {

/// Adds the kernels that are emulated, gpu/<name>, without those of a device.
void register_emulated(Registry& registry);

/// How often kernels are emulated, each time with lanes and blocks in another order.
/// [certify/emulation/emulated_check_test]
const std::vector<std::string>& emulation_orders();

/// Whether accesses to shared memory are held against one another. On needs a program whose kernels
/// are compiled with hooks (gpu/CMakeLists.txt).
enum class SharedMemoryChecks : std::uint8_t { off, on };

/// What the launches of one call reported.
struct WatchedLaunches {
  std::int64_t launches = 0, blocks_given_up = 0;
  std::int64_t shared_bytes = 0;  // the most of any block
  std::vector<std::string> diagnoses;

  bool clean() const { return diagnoses.empty() && blocks_given_up == 0; }
};

/// Calls `call` while the launches of this thread are emulated in an order, 0 to
/// emulation_orders().size() - 1.  [certify/emulation/emulated_check_test]
WatchedLaunches watch_launches(std::size_t order, SharedMemoryChecks checks,
                               const std::function<void()>& call);

}  // namespace attest
