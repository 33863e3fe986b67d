#include "core/text/thousands.hpp"

namespace attest {

std::string thousands(std::int64_t number) {
  std::string text = std::to_string(number);
  const std::size_t sign = number < 0 ? 1 : 0;
  for (std::size_t end = text.size(); end > sign + 3;) {
    end -= 3;
    text.insert(end, ",");
  }
  return text;
}

}  // namespace attest
