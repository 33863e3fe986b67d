#pragma once

#include <string>

namespace attest {

/// Returns the shortest text that reads back as the same number.  [core/problem_test "round trip"]
std::string shortest(double value);

}  // namespace attest
