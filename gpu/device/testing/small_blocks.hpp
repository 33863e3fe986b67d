#pragma once

#include <cstdint>

/// Launches that try the edges of what a block may be.
namespace attest::gpu::cuda {

/// Bytes that the policy Counted adds up when each thread reads a float and the first of a block
/// writes one.
struct CountedBytes {
  std::uint64_t read = 0, written = 0;
  friend bool operator==(const CountedBytes&, const CountedBytes&) = default;
};
CountedBytes bytes_counted_by(int blocks, int threads);

/// The most shared memory that the device gives a block.
std::int64_t shared_bytes_limit();

/// A kernel with static shared memory: what fits() says of so many dynamic bytes beside it, and
/// what the device does.
bool fits_beside_static(std::int64_t dynamic_bytes);
bool launches_beside_static(std::int64_t dynamic_bytes);

/// How shared memory beyond 48 KiB is asked for: as all launches of the project do, or by each
/// launch what it needs.
enum class Asking : std::uint8_t { as_all, its_own };

/// Launches of one kernel that fail when threads launch it with more and with less shared memory.
int refused_among_threads(Asking asking);

/// Sets a byte of the device's memory to 0.
void clear_byte(void* at);

}  // namespace attest::gpu::cuda
