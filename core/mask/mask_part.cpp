#include "core/mask/mask_part.hpp"

#include <charconv>

#include "core/error.hpp"

namespace attest {

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  while (true) {
    const std::size_t end = text.find(separator, begin);
    parts.emplace_back(text.substr(begin, end - begin));
    if (end == std::string_view::npos) return parts;
    begin = end + 1;
  }
}

bool names_path(std::string_view part) {
  return part.rfind("file_", 0) == 0 || part.rfind("pattern_", 0) == 0;
}

void refuse_part(std::string_view part, const std::string& why) {
  throw InvalidProblem("mask: '" + std::string(part) + "' " + why);
}

std::int64_t parse_integer(std::string_view part, std::string_view digits, std::int64_t limit) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size() || value < 0 || value > limit) {
    refuse_part(part, "needs an integer from 0 to " + std::to_string(limit) + " where '" +
                          std::string(digits) + "' stands");
  }
  return value;
}

std::int64_t parse_width(std::string_view part, std::string_view text, std::int64_t limit) {
  return text == "inf" ? -1 : parse_integer(part, text, limit);
}

std::string spell_width(std::int64_t width) { return width < 0 ? "inf" : std::to_string(width); }

}  // namespace attest
