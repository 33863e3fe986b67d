#pragma once

#include <cstdint>

namespace attest::certify {

/// Returns the bytes a second that so many threads read from an array that no cache holds, 256 MiB.
double read_bandwidth(std::int32_t threads);

}  // namespace attest::certify
