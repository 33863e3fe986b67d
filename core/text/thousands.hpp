#pragma once

#include <cstdint>
#include <string>

namespace attest {

/// Returns the number with a comma before every three digits: "1,052,672", "-1,000".
/// [core/text/thousands_test]
std::string thousands(std::int64_t number);

}  // namespace attest
