#include "certify/report/html/markup.hpp"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "certify/printable.hpp"

namespace attest::certify {

std::string escaped(std::string_view text) {
  std::string safe;
  for (const char c : printable_lines(text)) {
    switch (c) {
      case '&':
        safe += "&amp;";
        break;
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '"':
        safe += "&quot;";
        break;
      case '\'':
        safe += "&#39;";
        break;
      default:
        safe += c;
    }
  }
  return safe;
}

std::string text_of(const nlohmann::json& object, const char* key) {
  return escaped(object.at(key).get<std::string>());
}

std::string link_path(std::string_view file) {
  constexpr std::string_view kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/";
  std::string path;
  for (const char c : file) {
    path += kPlain.find(c) != std::string_view::npos
                ? std::string(1, c)
                : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return path;
}

std::string breakable(std::string_view problem) {
  std::string text;
  for (const char c : escaped(problem)) text += c == ',' ? ",<wbr/>" : std::string(1, c);
  return text;
}

std::string readable(double value) {
  constexpr double kMostWhole = 1e15;
  if (std::trunc(value) != value || !(std::abs(value) < kMostWhole)) {
    return fmt::format("{:.3g}", value);
  }
  const std::string digits = fmt::format("{:.0f}", std::abs(value));
  std::string text = value < 0 ? "-" : "";
  for (std::size_t k = 0; k < digits.size(); ++k) {
    if (k > 0 && (digits.size() - k) % 3 == 0) text += "\u2009";  // thin space
    text += digits[k];
  }
  return text;
}

std::string coordinate(double value) {
  std::string text = fmt::format("{:.2f}", value);
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text;
}

}  // namespace attest::certify
