#pragma once

#include <vector>

#include "certify/bench/timing/timing.hpp"

/// Counterpart of timing.hpp for kernels of the loss gradient in float32.
namespace attest::certify {

/// Judges each kernel's gradients on the problem within their derived bounds; throws InvalidProblem
/// for the first that does not pass.  [count_bench_smoke]
void verify_loss(const std::vector<const attest_kernel*>& kernels, const Problem& problem,
                 std::uint64_t seed);

/// Times every kernel on one thread in shuffled rounds. Only dX is asked for.
Measurement measure_loss(const std::vector<const attest_kernel*>& kernels, const Problem& problem,
                         int rounds, std::uint64_t seed);

/// Useful operations of dX: 8 n^2 d + 6 n d^2.
double useful_loss_flops(const Problem& problem);

}  // namespace attest::certify
