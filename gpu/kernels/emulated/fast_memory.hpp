#pragma once

#include <cstdint>
#include <string_view>

/// The fast memory that a block of a kernel has.
namespace attest::gpu {

/// Memory that the compiler gives each thread of a kernel.
struct ThreadMemory {
  int registers = 0;    // of 4 bytes
  int local_bytes = 0;  // arrays and registers in global memory: words that no policy counts

  friend bool operator==(const ThreadMemory&, const ThreadMemory&) = default;
};

/// Shared memory, static and dynamic, and the registers of all threads: sums that stay in registers
/// are in fast memory as tiles in shared memory are.
struct FastMemory {
  std::int64_t shared_bytes = 0;
  int threads = 0;
  ThreadMemory thread;

  /// In words of 4 bytes.  [gpu/kernels/emulated/fast_memory_test "words"]
  std::int64_t words() const {
    return (shared_bytes + 3) / 4 + std::int64_t{threads} * thread.registers;
  }
};

/// Returns what is declared of a kernel with the policy Uncounted, spelled with its other template
/// arguments
/// ("flash2_forward<Flash2Tile<32, 32>, 4, float>"): registers in the units of 8 in which a device
/// gives them, the most over the architectures compiled for. Throws InvalidProblem for a kernel
/// that is not declared. [gpu/kernels/emulated/fast_memory_test,
/// gpu/device/measure/resource_usage_test "as declared"]
ThreadMemory declared_thread_memory(std::string_view kernel);

}  // namespace attest::gpu
