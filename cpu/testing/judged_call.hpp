#pragma once

#include "core/abi/attest_kernel.h"
#include "cpu/testing/call.hpp"

namespace attest::cpu::testing {

/// Error over bound of every output, the bounds those of cpu/testing/naive.
struct Ratios {
  double O = 0, LSE = 0, dQ = 0, dK = 0, dV = 0;

  void include(const Ratios& other);
  double worst() const;
};

/// Forward and backward, and what is left of the workspace's guards: a Catch2 assertion each.
void run_both(Call& call, const attest_kernel& kernel);

/// Returns the ratios of a call that ran both passes.
Ratios judge(const Call& call);

}  // namespace attest::cpu::testing
