#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

/// Reading one part of a mask's spelling, like "window_3_0".
namespace attest {

inline constexpr std::int64_t kLargest32 = std::numeric_limits<std::int32_t>::max();

std::vector<std::string> split(std::string_view text, char separator);

/// Tells whether the part names a file: file_PATH or pattern_PATH.
bool names_path(std::string_view part);

/// Throws InvalidProblem: "mask: 'PART' WHY".
[[noreturn]] void refuse_part(std::string_view part, const std::string& why);

/// The integer, from 0 to `limit`; else refuses the part.
std::int64_t parse_integer(std::string_view part, std::string_view digits, std::int64_t limit);

/// A width of a window: `inf` is -1, unbounded; else an integer from 0 to `limit`.
std::int64_t parse_width(std::string_view part, std::string_view text, std::int64_t limit);

/// The spelling of a width.
std::string spell_width(std::int64_t width);

}  // namespace attest
