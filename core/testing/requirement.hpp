#pragma once

#include <functional>
#include <string>

namespace attest::testing {

/// Sets, before main, what a test program needs: `missing` returns "" or why the need is not met. A
/// program with an unmet need ends with 77, which CTest reports as skipped.
///
///     const bool needs_device = testing::require_for_all([] { return device().absent_because; });
bool require_for_all(std::function<std::string()> missing);

}  // namespace attest::testing
