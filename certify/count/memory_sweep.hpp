#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace attest::certify {

/// Returns the sizes of fast memory of a text, in the order given: "16384"; "1024,4096";
/// "1024:65536:x2", each twice the one before up to the second; "1024:4096:+1024", in steps.
///
/// Requires: whole numbers from 0 to 2^63 - 2; first at most last, first at least 1 and a factor of
/// at least 2 with x, a step of at least 1 with +; at most kMostSizes sizes. Else throws
/// InvalidProblem. [certify/count/memory_sweep_test "sizes of fast memory"]
std::vector<std::int64_t> memory_sizes(const std::string& text);

constexpr std::size_t kMostSizes = 256;

}  // namespace attest::certify
