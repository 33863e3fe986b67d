// The experiment that reviewers asked for: both cases as the fast memory of a block shrinks.
#include "certify/reproduce/claims/capped_blocks.hpp"

namespace attest::certify {
namespace {

Findings run(const Laboratory& lab) {
  // For the loss gradient, loss_large holds a square matrix, which fits no block at 256.
  constexpr std::int64_t kHeadDim = 256, kLossHeadDim = 192;
  return capped_blocks(
      {lab.seqlen_or(256, 512), lab.head_dim_or(kHeadDim), lab.head_dim_or(kLossHeadDim)},
      emulated_counts());
}

}  // namespace

Experiment capped_blocks_experiment() {
  // Wider heads have sums that 128 registers a lane do not hold.
  return {"capped_blocks",
          "CUDA kernels of both cases under a cap, emulated",
          {{"seqlen", 32, 2048}, {"head-dim", 96, 256}},
          run,
          17};
}

}  // namespace attest::certify
