#pragma once

#include <cstdlib>

namespace attest::testing {

/// Tells whether ci/nightly runs the test: then it takes more elements, cases and lengths.
inline bool is_nightly() { return std::getenv("ATTEST_NIGHTLY") != nullptr; }

}  // namespace attest::testing
