#pragma once

#include <functional>
#include <string>

namespace attest::testing {

/// What a test program needs: "" or why it is not here. Set before main; the program then ends
/// with 77, which CTest reports as skipped.
///
///     const bool needs_device = testing::require_for_all([] { return device().absent_because; });
bool require_for_all(std::function<std::string()> missing);

}  // namespace attest::testing
