#include "certify/printable.hpp"

#include <array>
#include <cstdint>

namespace attest::certify {
namespace {

bool within(unsigned char byte, unsigned least, unsigned most) {
  return byte >= least && byte <= most;
}

// Bytes of the character that the text begins with when it is UTF-8 (Unicode 15, table 3-7) and no
// control character, else 0.
std::size_t visible_character(std::string_view text) {
  const auto byte = [text](std::size_t at) {
    return at < text.size() ? static_cast<unsigned char>(text[at]) : static_cast<unsigned char>(0);
  };
  const unsigned char lead = byte(0);
  if (within(lead, 0x20, 0x7e)) return 1;
  // Below U+00A0 there are only controls; then shortest forms without surrogates, to U+10FFFF.
  struct Form {
    unsigned first, last, second_least, second_most;
    std::size_t bytes;
  };
  constexpr std::array<Form, 9> kForms{{{0xc2, 0xc2, 0xa0, 0xbf, 2},
                                        {0xc3, 0xdf, 0x80, 0xbf, 2},
                                        {0xe0, 0xe0, 0xa0, 0xbf, 3},
                                        {0xe1, 0xec, 0x80, 0xbf, 3},
                                        {0xed, 0xed, 0x80, 0x9f, 3},
                                        {0xee, 0xef, 0x80, 0xbf, 3},
                                        {0xf0, 0xf0, 0x90, 0xbf, 4},
                                        {0xf1, 0xf3, 0x80, 0xbf, 4},
                                        {0xf4, 0xf4, 0x80, 0x8f, 4}}};
  for (const Form& form : kForms) {
    if (!within(lead, form.first, form.last)) continue;
    bool whole = within(byte(1), form.second_least, form.second_most);
    for (std::size_t at = 2; at < form.bytes; ++at) whole = whole && within(byte(at), 0x80, 0xbf);
    return whole ? form.bytes : 0;
  }
  return 0;
}

std::string escaped(char c) {
  constexpr const char* kDigits = "0123456789abcdef";
  const auto byte = static_cast<unsigned char>(c);
  return {'\\', 'x', kDigits[byte / 16], kDigits[byte % 16]};
}

}  // namespace

std::string printable(std::string_view text) {
  std::string shown;
  while (!text.empty()) {
    const std::size_t bytes = visible_character(text);
    shown += bytes > 0 ? std::string(text.substr(0, bytes)) : escaped(text[0]);
    text.remove_prefix(bytes > 0 ? bytes : 1);
  }
  return shown;
}

std::string printable_lines(std::string_view text) {
  std::string shown;
  for (std::size_t begin = 0;;) {
    const std::size_t end = text.find('\n', begin);
    shown += printable(text.substr(begin, end - begin));
    if (end == std::string_view::npos) return shown;
    shown += '\n';
    begin = end + 1;
  }
}

}  // namespace attest::certify
