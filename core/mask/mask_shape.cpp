#include "core/mask/mask_shape.hpp"

#include "core/files/regular_file.hpp"
#include "core/mask/mask_part.hpp"
#include "core/mask/mask_spellings.hpp"

namespace attest {
namespace {

bool begins(const std::string& part, std::string_view with) { return part.rfind(with, 0) == 0; }

// Rows of characters; whether they are 0 and 1 and equally long is asked where they are used.
PatternShape shape_of_rows(const std::string& path) {
  std::ifstream file = open_regular_file("mask", path, "a text file");
  PatternShape shape{0, 0};
  bool open = false;  // a row without its line feed
  for (char c = 0; file.get(c);) {
    open = c != '\n';
    if (!open) ++shape.rows;
    if (open && c != '\r' && shape.rows == 0) ++shape.columns;
  }
  if (open) ++shape.rows;
  return shape;
}

PatternShape shape_of_documents(const std::string& part) {
  PatternShape shape{0, 0};
  const auto words = split(part, '_');
  for (std::size_t index = 1; index < words.size(); ++index) {
    const auto sizes = split(words[index], 'x');
    shape.rows += parse_integer(part, sizes.front(), kLargest32);
    shape.columns += parse_integer(part, sizes.back(), kLargest32);
  }
  return shape;
}

}  // namespace

std::optional<PatternShape> shape_of_mask(std::string_view text) {
  for (const std::string& part : mask_parts(text)) {
    if (begins(part, "file_")) return shape_of_rows(part.substr(5));
    if (begins(part, "documents_")) return shape_of_documents(part);
    if (begins(part, "pattern_")) {
      const SparsityPattern pattern = read_pattern_file(part.substr(8));
      return PatternShape{pattern.rows(), pattern.columns()};
    }
  }
  return std::nullopt;
}

}  // namespace attest
