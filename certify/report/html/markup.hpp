#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace attest::certify {

/// The text for element content and quoted attributes of HTML and SVG: & < > " ' escaped, control
/// characters and bytes that are no UTF-8 spelled as \x1b.  [certify/report/html/html_test
/// "escaped"]
std::string escaped(std::string_view text);

/// Returns the text that an object has at a key, escaped.
std::string text_of(const nlohmann::json& object, const char* key);

/// Returns a file's relative path as a link has it: all bytes but letters, digits and -._~/ as %23.
/// [certify/report/html/index_test "names that links spell otherwise"]
std::string link_path(std::string_view file);

/// The text of a problem, escaped, which is broken after a comma where it does not fit in a line.
/// [certify/report/html/html_test "problems"]
std::string breakable(std::string_view problem);

/// A number as people read it: three significant digits, thousands apart in whole numbers.
/// [certify/report/html/html_test "numbers"]
std::string readable(double value);

/// A number of an SVG attribute: at most two decimals.
std::string coordinate(double value);

}  // namespace attest::certify
