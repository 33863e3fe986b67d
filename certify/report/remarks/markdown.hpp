#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace attest::certify {

/// Returns a certificate in a screenful of Markdown, as job summaries of CI systems show it: a
/// table of the kernels, findings with the line that reproduces each, gaps, known failures. Throws
/// InvalidProblem unless it is of attest-certificate-1.  [certify/report/remarks/remarks_test]
std::string markdown_report(const nlohmann::json& certificate);

}  // namespace attest::certify
