#pragma once

#include "gpu/testing/call.hpp"

namespace attest::gpu::testing {

/// One call of a loss gradient; inputs depend on the extents alone.
struct LossCall {
  LossCall(std::int64_t n, std::int64_t d);
  attest_loss_args arguments(const attest_kernel& kernel);

  Problem problem;
  AbiProblem form;
  Values A1, A2, A3, E, X, Y, dX, dY;

 private:
  std::vector<float> workspace_;  // NaN
};

}  // namespace attest::gpu::testing
