#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace attest::certify {

/// A certificate for the test views of CI systems: one suite per kernel, one test case per law,
/// where the kernel ran as the property `ran`.
/// A law that failed is a failure (an error where the kernel crashed) with the line that reproduces
/// it; a law that counted on no case is skipped, never passed; what is missing for a certificate is
/// a failure of the case `complete`, a violated bound of I/O one of the case `io`.
/// Requires: an object of the schema attest-certificate-1. Else throws InvalidProblem.
/// [certify/report/junit_test]
std::string junit_report(const nlohmann::json& certificate);

}  // namespace attest::certify
