#pragma once

#include "core/abi/attest_kernel.h"
#include "core/testing/kernel_call.hpp"
#include "cpu/testing/naive.hpp"

/// Calls beside the definition of attention.
namespace attest::cpu::testing {

/// The definition on the values that a call gives its kernel; backward from the O and LSE that lie
/// in the call.
NaiveForward naive_forward(const attest::testing::Call& call);
NaiveBackward naive_backward(const attest::testing::Call& call,
                             Deltas deltas = Deltas::from_outputs);

/// The largest error / bound over the elements; infinity where a class differs (NaN, infinities) or
/// an error is above a bound of 0.
double worst_ratio(const TensorView& got, const Bounded& expected);

/// Error over bound of every output, the bounds those of cpu/testing/naive.
struct Ratios {
  double O = 0, LSE = 0, dQ = 0, dK = 0, dV = 0;

  void include(const Ratios& other);
  double worst() const;
};

/// Forward and backward, and that nothing was written beside the tensors' elements and the
/// workspace: a Catch2 assertion each.
void run_both(attest::testing::Call& call, const attest_kernel& kernel);

/// Returns the ratios of a call that ran both passes.
Ratios judge(const attest::testing::Call& call);

}  // namespace attest::cpu::testing
