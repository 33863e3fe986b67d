#pragma once

#include <vector>

#include "proptest/signatures/signature.hpp"

namespace attest::proptest {

/// signatures_of for the loss gradient.
/// Cost:     problems of more than 2^20 products per pass are left out; else about 150 references.
/// [proptest/signatures/loss_signature_test "every signature of the loss gradient"]
std::vector<Signature> loss_signatures_of(const attest_kernel& kernel, const Case& shrunk,
                                          const Case& found);

}  // namespace attest::proptest
