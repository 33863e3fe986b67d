#pragma once

#include <cstdint>
#include <vector>

#include "cpu/kernels/score_tile.hpp"

/// NaN and infinities in tiles of V. A product of matrices takes 0 times such a value into rows
/// that do not see its key; here it reaches the others alone.
namespace attest::cpu {

/// One of them, in its tile.
struct SpecialValue {
  std::int64_t key, column;
  float value;
};

/// Takes them out of a tile V(keys, columns): 0 takes their place.
std::vector<SpecialValue> take_special_values(float* V, std::int64_t keys, std::int64_t columns);

/// Adds P times them to the rows of O(rows, columns) that see their keys; P(rows, keys).
void add_special_values(const attest_forward_args& args, std::int64_t b, const Batch& batch,
                        const ScoreBlock& block, const std::vector<SpecialValue>& special,
                        const float* P, std::int64_t columns, float* O);

}  // namespace attest::cpu
