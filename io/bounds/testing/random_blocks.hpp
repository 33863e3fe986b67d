#pragma once

#include "core/problem.hpp"
#include "io/bounds/patterns/pattern_degrees.hpp"

namespace attest::io::testing {

inline constexpr char kRandomBlocks[] = "sq=500,sk=512,d=8,mask=block_16_25_1";

/// A quarter of 32 x 32 blocks of 16, the last rows ragged: their weights are searched once for all
/// tests.
inline const PatternDegrees& random_blocks() {
  static const PatternDegrees degrees = pattern_degrees(Problem::parse(kRandomBlocks));
  return degrees;
}

}  // namespace attest::io::testing
