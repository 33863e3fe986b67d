#pragma once

#include <cstdint>

#include "core/abi/attest_kernel.h"
#include "cpu/kernels/tiles/score_tile.hpp"

/// Additive bias: read as (batch, head, query, key), whatever it depends on.
namespace attest::cpu {

/// Adds the bias of batch entry b to the scores S(rows, keys) of a block.
void add_bias(const attest_tensor& bias, std::int64_t b, const ScoreBlock& block, float* S);

/// Tells whether the bias of a pair is minus infinity.
bool hides(const attest_tensor& bias, std::int64_t b, std::int64_t head, std::int64_t query,
           std::int64_t key);

/// Elements of dBias: `rows` queries from `first` and `keys` keys from `key` on.
struct BiasBlock {
  std::int64_t batch, head, first, rows, key, keys;
};

/// Writes a block of dBias, sums(rows, keys), in its own type.
void store_bias(const attest_tensor& dBias, const BiasBlock& block, const float* sums);

}  // namespace attest::cpu
