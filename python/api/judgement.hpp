#pragma once

#include <string>

#include "python/api/attention_call.hpp"

namespace attest::python {

struct Judgement {
  attest_outcome outcome = ATTEST_PASSED;
  std::string text;  // "" when passed
};

/// Judges a run's outputs. The text of a refusal names the worst element, its error and bound, the
/// term that dominates the bound, the known mistakes whose results these are, and the presets under
/// which all would pass.  [python/api/judgement_test]
Judgement judge(const AttentionCall& call, const proptest::KernelRun& run);

/// Throws InvalidProblem where no bound covers the contract.
void require_bounds(const AttentionCall& call);

}  // namespace attest::python
