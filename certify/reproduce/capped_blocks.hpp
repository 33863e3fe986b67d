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

/// What a family of kernels moves under a cap in bytes; nothing where no variant fits.
using CountUnderCap = std::function<std::optional<CappedCount>(
    const std::string& family, std::int64_t cap_bytes, const Problem& problem)>;

/// count_capped of gpu/watch.hpp: counted in the emulation.
CountUnderCap emulated_counts();

/// Forward, backward and loss gradient on N queries and keys, caps from d^2/8 to 8 d^2 words.
/// Throws InvalidProblem where kernels of both cases fit no cap on one side of d^2.
/// [certify/reproduce/capped_blocks_test "other counts"]
Findings capped_blocks(std::int64_t seqlen, std::int64_t head_dim, const CountUnderCap& count);

}  // namespace attest::certify
