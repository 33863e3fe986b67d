#include "certify/count/memory_sweep.hpp"

#include <charconv>
#include <limits>

#include "core/error.hpp"

namespace attest::certify {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max() - 1;

[[noreturn]] void refuse(const std::string& text, const std::string& why) {
  throw InvalidProblem("'" + text + "' " + why +
                       "; give M, a list M,M,… or FROM:TO:xFACTOR or FROM:TO:+STEP");
}

std::int64_t number(const std::string& part, const std::string& text) {
  std::int64_t value = -1;
  const char* end = part.data() + part.size();
  const auto [stopped, error] = std::from_chars(part.data(), end, value);
  if (error != std::errc() || stopped != end || value < 0 || value > kMost) {
    refuse(text, (part == text ? "" : "has '" + part + "', which ") +
                     std::string("is not a whole number from 0 to ") + std::to_string(kMost));
  }
  return value;
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  for (std::size_t end = text.find(separator); end != std::string::npos;
       end = text.find(separator, begin)) {
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  parts.push_back(text.substr(begin));
  return parts;
}

// The size after `size`, or past `last` where there is none.
std::int64_t after(std::int64_t size, char kind, std::int64_t step, std::int64_t last) {
  if (kind == 'x') return size > last / step ? last + 1 : size * step;
  return step > last - size ? last + 1 : size + step;
}

}  // namespace

std::vector<std::int64_t> memory_sizes(const std::string& text) {
  std::vector<std::int64_t> sizes;
  const std::vector<std::string> range = split(text, ':');
  if (range.size() == 1) {
    for (const std::string& part : split(text, ',')) sizes.push_back(number(part, text));
  } else {
    const char kind = range.size() == 3 && !range[2].empty() ? range[2].front() : ' ';
    if (kind != 'x' && kind != '+') refuse(text, "is no range");
    const std::int64_t first = number(range[0], text), last = number(range[1], text),
                       step = number(range[2].substr(1), text);
    if (first > last) refuse(text, "begins above its end");
    if (kind == 'x' && (first < 1 || step < 2)) refuse(text, "never grows");
    if (kind == '+' && step < 1) refuse(text, "never grows");
    for (std::int64_t size = first; size <= last && sizes.size() <= kMostSizes;
         size = after(size, kind, step, last)) {
      sizes.push_back(size);
    }
  }
  if (sizes.size() > kMostSizes) {
    refuse(text, "has more than " + std::to_string(kMostSizes) + " sizes");
  }
  return sizes;
}

}  // namespace attest::certify
