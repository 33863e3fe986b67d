#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "certify/reproduce/experiment.hpp"
#include "core/problem.hpp"
#include "gpu/watch.hpp"

/// CUDA kernels of both cases as the fast memory of a block is capped.
namespace attest::certify {

/// Counts what a family of kernels moves under a cap in bytes; nothing where no variant fits.
using CountUnderCap = std::function<std::optional<CappedCount>(
    const std::string& family, std::int64_t cap_bytes, const Problem& problem)>;

/// count_capped of gpu/watch.hpp: counted in the emulation.
CountUnderCap emulated_counts();

/// N queries and keys, and the head dimensions of attention and of the loss.
struct CappedSizes {
  std::int64_t seqlen = 0, head_dim = 0, loss_head_dim = 0;
};

/// Forward, backward and loss gradient under caps from d^2/8 words to what a block can have. Each
/// has two claims, one on either side of d^2: caps at which kernels of both cases fit decide it,
/// and without one it is not compared.
/// [certify/reproduce/claims/capped_blocks_test "other counts", "no tile that fits"]
Findings capped_blocks(const CappedSizes& sizes, const CountUnderCap& count);

}  // namespace attest::certify
