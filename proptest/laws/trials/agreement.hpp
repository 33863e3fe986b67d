#pragma once

#include "proptest/laws/law.hpp"

namespace attest::proptest {

/// Checks whether two kernels give the same O, LSE, dQ, dK and dV within the sum of their bounds,
/// each bound from its own kernel's contract. Compares what both claim for the case; LSE when both
/// write it. `unsupported` when one does not claim the case or their conventions differ.
/// [proptest/suites/agreement_test]
LawResult check_agreement(const attest_kernel& first, const attest_kernel& second, const Case& c);

}  // namespace attest::proptest
