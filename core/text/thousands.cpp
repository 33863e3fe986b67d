#include "core/text/thousands.hpp"

namespace attest {

std::string digits_apart(std::string digits) {
  const std::size_t sign = digits.starts_with('-') ? 1 : 0;
  for (std::size_t end = digits.size(); end > sign + 3;) {
    end -= 3;
    digits.insert(end, ",");
  }
  return digits;
}

}  // namespace attest
