#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "certify/report/safetensors.hpp"
#include "core/abi/attest_kernel.h"
#include "proptest/judge/loss.hpp"
#include "proptest/judge/truth/truth.hpp"
#include "proptest/laws/law.hpp"

/// The tensors of one failure: what the kernel was given, what it returned, what it should have
/// returned and how far off it may be.
namespace attest::certify {

/// The inputs of a case, of attention or of the loss gradient.
struct Inputs {
  std::optional<proptest::InputValues> attention;
  std::optional<proptest::LossValues> loss;
};

/// Returns the inputs that the law's case gives the kernel: by family and seed.
Inputs generated_inputs(const attest_kernel& kernel, const proptest::Case& c);

/// Tells whether two inputs have the same elements. Requires: inputs of the same case.
bool same_inputs(const proptest::Case& c, const Inputs& a, const Inputs& b);

/// "O lies within its bounds of the exact result on these inputs", as a law: what a replay of a
/// file and the reduction of values check. Attention is checked in the direction the kernel claims
/// for the problem. The inputs must outlive the law.
proptest::Law law_on(const Inputs& inputs);

/// The failing case with simpler inputs: elements are set to 0 or to 1 and whole tensors to 0 as
/// long as the law of `law_on` still fails with the verdict, and in the output, that it failed with
/// at first. Nothing when it does not fail. At most `budget` checks.
/// [certify/report/failure_test "values are reduced"]
std::optional<Inputs> reduce_values(const attest_kernel& kernel, const proptest::Case& c,
                                    const Inputs& inputs, int budget = 200);

/// Note written beside the tensors.
struct FailureNote {
  std::string kernel, law, message;
  int checks = 1;  // as Finding::checks
};

/// Inputs in their dtype (Q K V, and dO dLSE where the gradients were asked for; A1 A2 A3 E X Y of
/// the loss gradient), the outputs as the kernel stored them, `exact.O`, `bound.O` (probabilistic)
/// and `proved_bound.O` in f64 for every output; the case and the note in the metadata
/// (`attest: failure-1`, `problem: v1;…`, `values`, `seed`, `threads`, …). Outputs of a kernel that
/// did not complete are left out.  [certify/report/failure_test "tensors of a failure"]
TensorFile failure_file(const attest_kernel& kernel, const proptest::Case& c, const Inputs& inputs,
                        const FailureNote& note);

/// The same without outputs, and without calling the kernel: of a case in which it died or hung.
TensorFile inputs_file(const proptest::Case& c, const Inputs& inputs, const FailureNote& note);

/// A failure read back.
struct Failure {
  proptest::Case of;
  Inputs inputs;
  FailureNote note;
};

/// Reads what failure_file wrote. Throws InvalidProblem naming the file and what is wrong with it:
/// no such metadata, another version, a tensor missing, of a wrong dtype or shape.
/// [certify/report/failure_test "bad failures are refused"]
Failure parse_failure(const TensorFile& file, const std::string& path);

}  // namespace attest::certify
