#pragma once

#include <cstdint>
#include <vector>

#include "core/problem.hpp"
#include "core/testing/nightly.hpp"
#include "io/bounds/patterns/pattern_degrees.hpp"

namespace attest::io::testing {

inline constexpr char kRandomBlocks[] = "sq=500,sk=512,d=8,mask=block_16_25_1";

/// A quarter of 32 x 32 blocks of 16, the last rows ragged: their weights are searched once for all
/// tests.
inline const PatternDegrees& random_blocks() {
  static const PatternDegrees degrees = pattern_degrees(Problem::parse(kRandomBlocks));
  return degrees;
}

/// Sizes of fast memory in words, each with seconds of search: less memory, more words.
inline std::vector<std::int64_t> shrinking_memories() {
  if (attest::testing::is_nightly()) return {8192, 4096, 3000, 2048, 1024};
  return {4096, 2048};
}

}  // namespace attest::io::testing
