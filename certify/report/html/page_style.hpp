#pragma once

namespace attest::certify {

/// The style sheet of a report, for light and dark.
extern const char* const kPageStyle;

}  // namespace attest::certify
