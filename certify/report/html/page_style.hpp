#pragma once

namespace attest::certify {

/// The style sheet of every page, for light and dark, wide and narrow.
extern const char* const kPageStyle;

}  // namespace attest::certify
