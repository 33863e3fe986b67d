#pragma once

#include <string>
#include <vector>

#include "certify/report/remarks/remarks.hpp"

namespace attest::certify {

/// Returns the remarks as a SARIF log with one run: laws are its rules; known failures are
/// suppressed results; a fingerprint of kernel and rule tells the same finding of two runs.
/// `version` is that of Attest.  [certify/report/remarks/remarks_test] Source: OASIS SARIF 2.1.0.
std::string sarif_report(const std::vector<Remark>& remarks, const std::string& version);

}  // namespace attest::certify
