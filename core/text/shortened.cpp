#include "core/text/shortened.hpp"

#include <algorithm>

namespace attest {

std::string shortened(std::string_view text, std::size_t most) {
  std::string shown(text.substr(0, most));
  // A char has a sign on x86-64 and none on Arm; bytes from 128 on are letters of UTF-8.
  const auto controls = [](char c) { return static_cast<unsigned char>(c) < ' '; };
  std::replace_if(shown.begin(), shown.end(), controls, '?');
  return text.size() > most ? shown + "..." : shown;
}

}  // namespace attest
