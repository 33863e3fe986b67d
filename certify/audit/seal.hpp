#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

/// Ties a certificate to its own text, to a date and to the files it is about.
namespace attest::certify {

/// Returns the SHA-256 of a certificate without its member `sha256`: of its JSON in one line, keys
/// sorted, bytes that are no UTF-8 as U+FFFD. The same however the file is indented.
/// [certify/audit/seal_test]
std::string seal_of(const nlohmann::json& certificate);

/// Returns why a certificate's text cannot be relied on: it is not the one that was sealed, or has
/// no seal; "" where it is as it was made.  [certify/audit/seal_test]
std::string seal_fault(const nlohmann::json& certificate);

/// Writes seal_of into the member `sha256`; the last thing that happens to a certificate.
void seal(nlohmann::json& certificate);

/// Returns the date of now in UTC, like 2026-01-31T12:00:00Z, or the one that the environment's
/// SOURCE_DATE_EPOCH gives in seconds since 1970. Throws InvalidProblem where that is no whole
/// number or past the year 9999.  [certify/audit/seal_test]
std::string certificate_date();

}  // namespace attest::certify
