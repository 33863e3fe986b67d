#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/problem.hpp"
#include "core/registry.hpp"

/// Emulated CUDA kernels as somebody looks on: orders of lanes and blocks, what launches report,
/// and the words of kernels that are held to a fast memory.
namespace attest {

/// Adds the kernels that are emulated, gpu/<name>, without those of a device.
void register_emulated(Registry& registry);

/// How often kernels are emulated, each time with lanes and blocks in another order.
/// [certify/emulation/emulated_check_test]
const std::vector<std::string>& emulation_orders();

/// Says whether accesses to shared memory are held against one another. On needs a program whose
/// kernels are compiled with hooks (gpu/CMakeLists.txt).
enum class SharedMemoryChecks : std::uint8_t { off, on };

/// Report of the launches of one call.
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

/// Adds the kernels of capped_families() of other sizes of tiles than register_emulated() has,
/// gpu/<name>_<size>.
void register_capped(Registry& registry);

/// One launch of a kernel that fits a cap.
struct CappedLaunch {
  std::string kernel;       // "flash2_forward<Flash2Tile<16, 16>, 4, float>"
  std::int64_t blocks = 0;  // at least 1
  std::int64_t shared_bytes = 0, register_bytes = 0;  // of a block on a device
  std::int64_t local_bytes = 0;  // of a lane: what found no register, words that are not counted
  std::int64_t read_words = 0, written_words = 0;  // of all blocks, counted in the emulation

  std::int64_t fast_bytes() const { return shared_bytes + register_bytes; }
};

/// Returns the bytes that a block can have on the largest device that the kernels are compiled for:
/// 227 KiB of shared memory and 65536 registers.
std::int64_t most_block_bytes();

struct CappedCount {
  std::string schedule;  // the variant: "flash2:bq=16,bk=16"
  std::vector<CappedLaunch> launches;

  CappedLaunch largest() const;  // the launch whose blocks have the most fast memory
  std::int64_t fast_bytes() const { return largest().fast_bytes(); }
  std::int64_t local_bytes() const;  // the most of a launch
  std::int64_t blocks() const;       // of all launches
  std::int64_t read_words() const;
  std::int64_t written_words() const;
};

/// Kernels with tiles of several sizes, in 128 registers a lane but for the products of
/// "loss_large" with its square matrices, which take fewer: "flash2" and "square_tiled" forward,
/// "two_pass" and "square_tiled_bwd" backward, "loss_large", "loss_rows" and "loss_small" the loss
/// gradient dX.
const std::vector<std::string>& capped_families();

/// Emulates the largest variant whose blocks have at most so much fast memory, shared memory and
/// registers together, on zeros in packed float32 tensors; LSE is written, dLSE is not given.
///
/// Throws InvalidProblem for an unknown family, a problem that no variant takes, and a cap below
/// the least, which it names.  [gpu/kernels/capped_test]
CappedCount count_capped(const std::string& family, std::int64_t cap_bytes, const Problem& problem);

}  // namespace attest
