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

/// Returns parts of that page for others: the verdict with its counts, and a line for each kernel,
/// whose name leads to its part of the page `report` (no link where that is empty). A certificate
/// that is not as the schema says throws nlohmann::json::exception.
std::string verdict_banner(const nlohmann::json& certificate);
std::string kernels_table(const nlohmann::json& certificate, const std::string& report);

}  // namespace attest::certify
