#pragma once

#include "core/abi/attest_kernel.h"

namespace attest::certify {

/// The peer the CPU kernels are measured against: unfused attention in float32 on Eigen's products,
/// one (query, key) matrix per head, OpenMP over the heads.
///
/// Shapes:   as core/abi/attest_kernel.h; f32, no mask, no softcap, no ALiBi, one K/V head per
/// query
///           head, innermost stride 1. Anything else is ATTEST_UNSUPPORTED.
/// Ensures:  O, LSE, dQ, dK, dV within the bounds of the plain contract, verified before each
///           measurement.  [attention_bench]
const attest_kernel& eigen_kernel();

}  // namespace attest::certify
