#pragma once

#include <cstdint>
#include <string>

#include "proptest/judge/truth/affordable.hpp"
#include "proptest/judge/truth/truth.hpp"
#include "python/api/attest_api.h"

namespace attest::python {

/// Holds a call of the C API in the judge's words.
struct AttentionCall {
  std::string contract;  // as it was spelled
  attest_description description{};
  Problem problem;
  Direction direction = Direction::forward;  // backward where dO is given
  std::uint64_t seed = 0;                    // one whose cases use dLSE exactly where it is given
  proptest::InputValues values;
};

/// Reads the problem, the contract and the inputs, for work of a kind.
/// Throws InvalidProblem for what does not fit together, with the axis and both extents, and for
/// work that this machine has no memory for.
/// [python/api/attest_api_test "bad calls"]
AttentionCall read_call(const attest_attention& call, proptest::Work work);

/// Reads what a kernel's forward pass stored: O, and LSE where it is given.
/// Requires: O. Else throws InvalidProblem.
proptest::KernelRun read_stored(const AttentionCall& call, const attest_results& got);

/// Reads the same with the gradients in backward. Requires: all three, and dSinks and dBias
/// of a problem with sinks and a bias. Else throws InvalidProblem.
proptest::KernelRun read_run(const AttentionCall& call, const attest_results& got);

/// Writes `from` to the tensor, rounded to its dtype.
/// Requires: the shape of `from`. Else throws InvalidProblem.
void write(const Tensor& from, const attest_tensor& to);

}  // namespace attest::python
