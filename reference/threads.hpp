#pragma once

#include <cstdint>

namespace attest::reference {

/// Whether a loop of so many multiplications and additions is worth starting threads for: below
/// some 50 microseconds of one thread, waking the others costs more than they save. Results never
/// depend on the answer.
inline constexpr std::int64_t kWorthThreads = std::int64_t{1} << 18;

/// What the error of one entry of a matrix takes, at least.
inline constexpr std::int64_t kEntryOperations = 16;

inline bool worth_threads(std::int64_t operations) { return operations >= kWorthThreads; }

}  // namespace attest::reference
