#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "certify/report/remarks/source_place.hpp"

namespace attest::certify {

/// Weight of a remark: a failure; what is missing for a certificate; a failure that was listed.
enum class Weight : std::uint8_t { error, warning, known };

/// One thing that a certificate says against a kernel, for tools that show them in the code.
struct Remark {
  Weight weight = Weight::error;
  std::string kernel, rule;  // a law, `io` or `complete`
  std::string message;
  std::string reproduce;  // the command; empty without one
  SourcePlace place;
  std::string fault{};  // its kind, where the law fails by one
};

/// Returns the remarks of a certificate in its order: findings, violations of I/O, gaps where
/// nothing failed. Throws InvalidProblem unless it is of attest-certificate-1.
/// [certify/report/remarks/remarks_test]
std::vector<Remark> remarks_of(const nlohmann::json& certificate, const SourcePlace& given);

}  // namespace attest::certify
