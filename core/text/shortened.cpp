#include "core/text/shortened.hpp"

#include <algorithm>

namespace attest {

std::string shortened(std::string_view text, std::size_t most) {
  std::string shown(text.substr(0, most));
  std::replace_if(
      shown.begin(), shown.end(), [](char c) { return c >= 0 && c < ' '; }, '?');
  return text.size() > most ? shown + "..." : shown;
}

}  // namespace attest
