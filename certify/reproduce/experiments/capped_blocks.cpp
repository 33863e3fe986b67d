// The experiment that reviewers asked for: both cases as the fast memory of a block shrinks.
#include "certify/reproduce/capped_blocks.hpp"

namespace attest::certify {
namespace {

Findings run(const Laboratory& lab) {
  constexpr std::int64_t kHeadDim = 256;
  return capped_blocks(lab.seqlen_or(128, 256), lab.head_dim_or(kHeadDim), emulated_counts());
}

}  // namespace

Experiment capped_blocks_experiment() {
  return {"capped_blocks",
          "CUDA kernels of both cases under a cap",
          {{"seqlen", 32, 2048}, {"head-dim", 192, 512}},
          run,
          16};
}

}  // namespace attest::certify
