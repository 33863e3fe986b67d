#pragma once

#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include "fixtures/emulated/emulation.hpp"
#include "proptest/judge/run.hpp"
#include "proptest/judge/truth/truth.hpp"
#include "proptest/values/values.hpp"

namespace attest::proptest {

/// One problem with values, the exact result, and bounds under the contract of one emulation.
/// Other kernels can be judged against that contract: those that break it.
class EmulatedCase {
 public:
  EmulatedCase(const std::string& problem, InputValues in, const fixtures::Emulation& contract)
      : problem_(Problem::parse(problem)),
        in_(std::move(in)),
        contract_(contract),
        kernel_(fixtures::emulated_kernel(contract_, problem_.dtype)),
        truth_(kernel_.description, problem_, in_, Direction::forward, 0) {}
  EmulatedCase(const EmulatedCase&) = delete;
  EmulatedCase& operator=(const EmulatedCase&) = delete;

  const Problem& problem() const { return problem_; }
  const InputValues& values() const { return in_; }
  const reference::Forward& exact() const { return truth_.forward(); }
  const reference::ForwardBounds& bounds() const { return truth_.forward_bounds(); }
  const attest_kernel& kernel() const { return kernel_; }

  /// Returns what a kernel leaves when it solves `problem` on this case's values.
  KernelRun run(const attest_kernel& kernel, const Problem& problem) const {
    return proptest::run(kernel, problem, in_, Direction::forward,
                         Case{problem, Values::normal, 0, 1});
  }
  KernelRun run() const { return run(kernel_, problem_); }

  Comparison judge_O(const KernelRun& got) const {
    return compare(got.O.view(), exact().O, bounds().O);
  }
  Comparison judge_LSE(const KernelRun& got) const {
    return compare(got.LSE.view(), exact().LSE, bounds().LSE);
  }

 private:
  Problem problem_;
  InputValues in_;
  fixtures::Emulation contract_;
  attest_kernel kernel_;
  Truth truth_;
};

}  // namespace attest::proptest
