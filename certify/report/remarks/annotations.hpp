#pragma once

#include <string>
#include <vector>

#include "certify/report/remarks/remarks.hpp"

namespace attest::certify {

/// Returns the remarks as workflow commands of GitHub Actions, one a line: `::error` for failures,
/// `::warning` for gaps, `::notice` for known failures, with file and line where there are any.
/// [certify/report/remarks/remarks_test]
std::string github_annotations(const std::vector<Remark>& remarks);

}  // namespace attest::certify
