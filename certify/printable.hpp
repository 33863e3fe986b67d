#pragma once

#include <string>
#include <string_view>

namespace attest::certify {

/// The text with every control character and every byte that is no UTF-8 spelled as \x1b, for
/// names and paths that people gave: a terminal would obey them.  [certify/printable_test]
std::string printable(std::string_view text);

/// The same for several lines: line feeds stay.
std::string printable_lines(std::string_view text);

}  // namespace attest::certify
