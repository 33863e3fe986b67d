#pragma once

#include <cstdint>
#include <vector>

#include "io/pebble/attention_dag.hpp"

/// Computations that io/pebble/attention_dag.hpp does not have: where the weights and outputs are
/// normalized differs. Symbols as there; nothing here knows a schedule.
namespace attest::schedules::testing {

/// Where a row is divided by its sum.
enum class Normalization : std::uint8_t {
  weights,  // m over the row; e <- s, m; p <- e, last sum; O: last o
  stored,   // sums over tiles of `block` keys; lse <- sum, m; p <- s, lse; rowsum <- p;
            // O <- last o, last rowsum
  tiles,    // after every tile: o <- o, sum; p <- e, sum
};

/// Rows without a key have no outputs.
io::Dag normalized_forward(const io::AttentionShape& shape, Normalization where,
                           std::int32_t block);

/// Softmax over pieces of blocks[i] of the keys that query i sees: f <- m of the pieces before, m;
/// sum and o of these <- themselves, f; at the end O <- o, sum.
io::Dag factored_forward(const io::AttentionShape& shape, const std::vector<std::int32_t>& blocks);

/// Softmax over tiles of `block` keys in parts of `part` keys, each with its o and lse, merged.
io::Dag split_forward(const io::AttentionShape& shape, std::int32_t block, std::int32_t part);

/// Values that the forward saved for the backward.
enum class Saved : std::uint8_t {
  weights,   // inputs p; delta[i,j] <- dp, p
  max_sums,  // inputs m, sum: e <- s, m; p <- e, sum; delta from dO, O
};

io::Dag saved_backward(const io::AttentionShape& shape, Saved saved);

/// How the gradient of the attention loss is multiplied out.
enum class LossOrder : std::uint8_t {
  through_w,  // softmax key by key; W[i] <- p, A2; g <- A1, W
  direct,     // the same, then y[j] <- X, A2; z over blocks of rows <- p, A1; g <- z, A2
  stored,     // softmax over tiles of `block` keys, f <- s, lse; W; g
};

io::Dag loss_dag(std::int32_t rows, std::int32_t head_dim, LossOrder order, std::int32_t block);

}  // namespace attest::schedules::testing
