#pragma once

#include <cstdint>

#include "core/abi/attest_kernel.h"
#include "core/moved_words.hpp"

namespace attest::cpu {

/// Tiles of the flash2 kernels: block_q queries, in panels, against block_k keys.
inline constexpr std::int64_t kBlockQ = 192;
inline constexpr std::int64_t kBlockK = 96;

/// Keys that stay in backward, kBlockK of them against a panel at a time.
inline constexpr std::int64_t kKeyBlock = 192;

/// Most parts of the keys that are worked through side by side for few queries, and least keys of
/// one. Their maxima and sums are merged, not their LSE. Queries of a group are few up to a panel;
/// up to a block where each head has kMostDecoded or fewer.
inline constexpr std::int64_t kMostSplits = 8;
inline constexpr std::int64_t kMostDecoded = 16;
inline constexpr std::int64_t kSplitKeys = 6 * kBlockK;

/// The score of a head's sink, -inf without sinks.
float sink_of(const attest_problem& problem, std::int64_t head);

/// The query heads that share one head of K and V.
inline std::int64_t group_of(const attest_problem& problem) {
  return problem.num_heads_q / problem.num_heads_kv;
}

/// Terms of the sums of forward: products of numbers, or of pairs of bf16 (AVX-512 BF16), for which
/// P is cast. Few queries have P stay in float32 with both.
enum class Terms : std::uint8_t { numbers, pairs };

/// Forward: a query block stays, keys stream past it; running maximum m and sum l per row (Dao
/// 2023, Algorithm 1). The queries are in the lanes of panels; rows of K and V are read where they
/// lie, or gathered from their pages and converted. Few queries of all heads of a group are one
/// block. Few queries with many keys: parts of the keys side by side, then merged.
/// `words`, where not null, counts: every tile is then copied, and one thread runs.
/// [schedules/kernel_words_test]
/// Terms::pairs: of tensors of bf16 alone.
std::int64_t flash2_forward_floats(const attest_problem& problem, Terms terms);
void flash2_forward(const attest_forward_args& args, MovedWords* words = nullptr,
                    Terms terms = Terms::numbers);

/// Backward, which recomputes P from LSE. dO . O - dLSE of each query first; then blocks of
/// kKeyBlock keys stay with their dK and dV, panels of queries pass by, and dQ goes on in memory
/// from block to block (Dao 2023, Algorithm 2). With more threads than heads of K and V: a pass for
/// dQ, then one for dK and dV, whose sums have the same order and bits. At last dSinks, of each
/// head the rows in their order, and dBias, of each element the tiles in their order. No sums
/// across threads, so the bits do not depend on their number. `words` as in forward.
std::int64_t flash2_backward_floats(const attest_problem& problem);
void flash2_backward(const attest_backward_args& args, MovedWords* words = nullptr);

}  // namespace attest::cpu
