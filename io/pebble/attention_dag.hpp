#pragma once

#include <cstdint>
#include <vector>

#include "io/pebble/dag.hpp"

/// Attention of one head as chains of fused multiply-adds: docs/theory/pebble-game.md.
namespace attest::io {

struct AttentionShape {
  std::int32_t seqlen_q = 1, seqlen_k = 1, head_dim_qk = 1, head_dim_v = 1;
  std::vector<std::uint8_t> visible;  // row-major; empty: every query sees every key

  bool sees(std::int32_t i, std::int32_t j) const {
    const std::int64_t entry = std::int64_t{i} * seqlen_k + j;
    return visible.empty() || visible[static_cast<std::size_t>(entry)] != 0;
  }
  /// The keys of query i in ascending order.
  std::vector<std::int32_t> keys(std::int32_t i) const;

  /// Throws InvalidProblem unless every size is at least 1 and the mask has seqlen_q * seqlen_k
  /// entries or none.
  void validate() const;
};

/// How P comes from S. The symbols: s[i,j,l] sums the first l+1 products of a score, p[i,j] is
/// exp of it, sum[i,j] the row sum up to key j, o[i,j,c] the sum of p V up to key j.
enum class Softmax : std::uint8_t {
  folded,           // the last multiply-add of a score gives p, without a word of its own
  unshifted,        // p <- s
  final_maximum,    // m[i,j] <- m, s; p <- s, last m
  running_maximum,  // keys in tiles: p <- s, m after the tile; rescaled sums and o at its start
};

/// Work of a row with one visible key: its score, or a copy of V (condition K4).
enum class OneKeyRow : std::uint8_t { computed, copied };

/// Role of lse[i]: none, or an output.
enum class LseWord : std::uint8_t { none, output };

struct ForwardDagOptions {
  Softmax softmax = Softmax::folded;
  std::int32_t block_k = 1;  // keys in a tile of running_maximum
  OneKeyRow one_key = OneKeyRow::computed;
  LseWord lse = LseWord::none;
};

/// O from inputs q[i,l], k[j,l], v[j,c]: outputs O[i,c] (and lse[i]); a row without a key has
/// none.
///
/// Requires: a valid shape, block_k at least 1. Else throws InvalidProblem.
/// Ensures:  the operands of every word are those of the definition  [io/pebble/dag_test]
Dag forward_dag(const AttentionShape& shape, const ForwardDagOptions& options);

/// Where the backward pass has row sums and delta from.
enum class Statistics : std::uint8_t {
  given,       // inputs lse[i], O[i,c]: p <- s, lse; delta[i,c] <- dO, O
  recomputed,  // e[i,j] <- s and sum[i,j] as forward, p <- e, last sum; delta[i,j] <- p, dp
};

/// Gradients from inputs q, k, v, dO[i,c]: dp[i,j,c] sums dO V, ds[i,j] <- p, dp, delta; outputs
/// are the last words of the chains dQ[i,j,l] <- ds, k; dK[i,j,l] <- ds, q; dV[i,j,c] <- p, dO
/// (over j for dQ, over i for the others). A row with one key has ds = 0: it takes part in dV only.
///
/// Requires: a valid shape. Else throws InvalidProblem.  [io/pebble/dag_test]
Dag backward_dag(const AttentionShape& shape, Statistics statistics);

}  // namespace attest::io
