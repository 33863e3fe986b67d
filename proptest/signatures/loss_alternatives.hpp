#pragma once

#include <cstdint>
#include <vector>

#include "proptest/judge/loss.hpp"
#include "proptest/signatures/alternative.hpp"
#include "proptest/signatures/deviation.hpp"

/// Wrong loss gradients of kernels with a known mistake, each with bounds of its own.
namespace attest::proptest {

/// One step of the loss gradient done otherwise.
enum class LossDeviation : std::uint8_t {
  none,
  delta_omitted,       // p = f q, without the row sums of c times f h
  last_key_dropped,    // where there are several
  normaliser_missing,  // weights are not divided by their sum
};

struct DeviantLoss {
  Weighed dX, dY;
};

/// dX and dY by the definition in float64, with a deviation.
/// Cost: seqlen^2 head_dim.
/// [proptest/signatures/loss_signature_test "without a deviation"]
/// Source: Li et al. 2024, section 3.
DeviantLoss deviant_loss(const LossValues& values, LossDeviation deviation);

/// dX, and dY where the kernel writes it, as kernels with a known mistake give them.
/// [proptest/signatures/loss_signature_test "every signature of the loss gradient"]
std::vector<Alternative> loss_alternatives(const attest_description& description,
                                           const Problem& problem, const LossValues& values,
                                           const LossTruth& truth);

}  // namespace attest::proptest
