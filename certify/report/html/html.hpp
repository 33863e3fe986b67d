#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace attest::certify {

/// One page without any outside part, of a certificate: verdict, kernels, and for each its
/// findings with the lines that reproduce them and where their errors lie, coverage, errors against
/// bounds, laws, I/O against lower bounds. Every text of the certificate is escaped.
/// Requires: an object of the schema attest-certificate-1. Else throws InvalidProblem.
/// [certify/report/html/html_test]
std::string html_report(const nlohmann::json& certificate);

}  // namespace attest::certify
