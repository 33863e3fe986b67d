#pragma once

#include <cstdint>
#include <vector>

namespace attest::reference {

/// Positions within each sequence of a problem, rising; as many lists as problem.sequences().
using PositionsInSequences = std::vector<std::vector<std::int64_t>>;

/// The queries and keys whose results are wanted, in every head, where those of all would cost too
/// much. Query i means row i of O, LSE and dQ; key j means row j of dK and dV.
struct Sample {
  PositionsInSequences queries, keys;
};

}  // namespace attest::reference
