#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/registry.hpp"
#include "gpu/watch.hpp"
#include "proptest/judge/run.hpp"

/// `attest emulate`: one case of an emulated CUDA kernel, in every order of lanes and
/// blocks.
namespace attest::certify {

/// A direction in one order.
struct EmulatedRun {
  std::string direction, order;
  WatchedLaunches launches;
  std::string misconduct;  // "" or what the calls did besides
};

struct EmulatedCheck {
  std::vector<EmulatedRun> runs;
  std::vector<std::string> findings;  // besides diagnoses: bits that depend on the order

  bool clean() const;
};

/// Runs the loss gradient, or backward after forward, or forward where the kernel does not claim
/// backward for the case, on the values and strides that the
/// laws would use. Bits that differ between orders are a finding, unless the kernel declares that
/// equal calls may differ.
///
/// `begins` is told each order before its run. A case without outputs may launch nothing.
///
/// Throws InvalidProblem for a problem that the kernel does not claim or refuses, and for a kernel
/// that has outputs and launches nothing emulated. [certify/emulation/emulated_check_test]
EmulatedCheck check_emulated(
    const attest_kernel& kernel, const proptest::Case& c, SharedMemoryChecks checks,
    const std::function<void(const std::string& order)>& begins = [](const std::string&) {});

}  // namespace attest::certify
