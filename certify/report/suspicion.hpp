#pragma once

#include <string>
#include <vector>

#include "core/abi/attest_kernel.h"
#include "proptest/judge/run.hpp"

/// Names the way in which a kernel seems to do without its work.
namespace attest::certify {

/// Names a way in which the kernel was seen to game its judge.
struct Suspicion {
  std::string name;       // "result_by_shape"
  std::string statement;  // "returned the result of an earlier call with the same shapes"
  bool operator==(const Suspicion&) const = default;
};

/// Returns what a failure shows of the kernel besides wrong numbers: by the message, where the
/// kernel touched what is not its own; else by experiments, each in a process of its own where the
/// kernel is isolated. An experiment calls the kernel several times with other values, in other or
/// in the same memory, and compares the outputs with those of its earlier calls, with the inputs,
/// and with exact results within their bounds. Empty where nothing explains the failure: an
/// ordinary mistake shows nothing.
/// Cost: about a hundred small references.
/// [certify/score/cheat_score_test "every cheat", certify/report/suspicion_test]
std::vector<Suspicion> suspicions_of(const attest_kernel& kernel, const proptest::Case& shrunk,
                                     const proptest::Case& found, const std::string& message);

}  // namespace attest::certify
