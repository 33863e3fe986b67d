#pragma once

#include <algorithm>
#include <cstdint>

#include "core/abi/attest_kernel.h"
#include "cpu/kernels/tiles/bias.hpp"

namespace attest::cpu {

/// Blocks of dBias, each of which one thread sums up over the axes that it lacks; none without a
/// dBias.
class BiasGrid {
 public:
  BiasGrid(const attest_backward_args& args, std::int64_t block_q, std::int64_t block_k)
      : problem_(*args.problem), block_q_(block_q), block_k_(block_k) {
    if (args.dBias == nullptr) return;
    std::copy_n(args.dBias->shape, 4, extents_);
    query_blocks_ = (extents_[2] + block_q - 1) / block_q;
    key_blocks_ = (extents_[3] + block_k - 1) / block_k;
  }
  std::int64_t blocks() const { return extents_[0] * extents_[1] * query_blocks_ * key_blocks_; }
  BiasBlock block(std::int64_t number) const {
    BiasBlock block{};
    block.key = number % key_blocks_ * block_k_;
    block.keys = std::min(block_k_, extents_[3] - block.key);
    number /= key_blocks_;
    block.first = number % query_blocks_ * block_q_;
    block.rows = std::min(block_q_, extents_[2] - block.first);
    number /= query_blocks_;
    block.head = number % extents_[1];
    block.batch = number / extents_[1];
    return block;
  }
  std::int64_t first_batch(const BiasBlock& block) const { return block.batch; }
  std::int64_t last_batch(const BiasBlock& block) const {
    return extents_[0] == 1 ? problem_.batch : block.batch + 1;
  }
  std::int64_t first_head(const BiasBlock& block) const { return block.head; }
  std::int64_t last_head(const BiasBlock& block) const {
    return extents_[1] == 1 ? problem_.num_heads_q : block.head + 1;
  }

 private:
  const attest_problem& problem_;
  std::int64_t block_q_, block_k_;
  std::int64_t extents_[4] = {0, 0, 0, 0};
  std::int64_t query_blocks_ = 0, key_blocks_ = 0;
};

}  // namespace attest::cpu
