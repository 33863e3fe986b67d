#include "certify/report/remarks/annotations.hpp"

#include <fmt/format.h>

#include "certify/printable.hpp"

namespace attest::certify {
namespace {

enum class Part : std::uint8_t { message, property };

// Encodes the characters that would end the command, or in a property the property.
std::string escaped(const std::string& text, Part part) {
  std::string result;
  for (const char c : printable_lines(text)) {
    const bool reserved =
        c == '%' || c == '\r' || c == '\n' || (part == Part::property && (c == ':' || c == ','));
    result += reserved ? fmt::format("%{:02X}", static_cast<unsigned char>(c)) : std::string(1, c);
  }
  return result;
}

const char* command(Weight weight) {
  return weight == Weight::error ? "error" : weight == Weight::warning ? "warning" : "notice";
}

std::string annotation(const Remark& remark) {
  std::string properties;
  if (!remark.place.file.empty()) {
    properties = "file=" + escaped(remark.place.file, Part::property) + ",";
    if (remark.place.line > 0) properties += fmt::format("line={},", remark.place.line);
  }
  const std::string title = remark.kernel + " " + remark.rule +
                            (remark.weight == Weight::known ? " (known failure)" : "");
  std::string message = remark.message;
  if (!remark.reproduce.empty()) message += "\nreproduce: " + remark.reproduce;
  return fmt::format("::{} {}title={}::{}\n", command(remark.weight), properties,
                     escaped(title, Part::property), escaped(message, Part::message));
}

}  // namespace

std::string github_annotations(const std::vector<Remark>& remarks) {
  std::string text;
  for (const Remark& remark : remarks) text += annotation(remark);
  return text;
}

}  // namespace attest::certify
