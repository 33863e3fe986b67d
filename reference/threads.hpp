#pragma once

#include <cstdint>

namespace attest::reference {

/// Multiplications and additions worth starting threads for: some 50 microseconds of one thread.
/// Below it, waking the others costs more than they save. No result depends on it.
inline constexpr std::int64_t kWorthThreads = std::int64_t{1} << 18;

inline bool worth_threads(std::int64_t operations) { return operations >= kWorthThreads; }

/// Operations that the error of one entry of a matrix takes, at least.
inline constexpr std::int64_t kEntryOperations = 16;

}  // namespace attest::reference
