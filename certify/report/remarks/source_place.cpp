#include "certify/report/remarks/source_place.hpp"

#include <charconv>
#include <regex>

#include "core/error.hpp"

namespace attest::certify {
namespace {

// 0 where the text is no line number.
int line_in(std::string_view text) {
  int line = 0;
  const auto [stopped, error] = std::from_chars(text.data(), text.data() + text.size(), line);
  return error == std::errc() && stopped == text.data() + text.size() ? line : 0;
}

std::string relative(const std::string& path) {
  return path.rfind("./", 0) == 0 ? path.substr(2) : path;
}

SourcePlace last_match(const std::string& message, const std::regex& pattern) {
  SourcePlace place;
  for (std::sregex_iterator match(message.begin(), message.end(), pattern), end; match != end;
       ++match) {
    place = {relative((*match)[1]), line_in((*match)[2].str())};
  }
  return place;
}

}  // namespace

SourcePlace parse_place(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  const SourcePlace place{text.substr(0, colon),
                          colon == std::string::npos ? 0 : line_in(text.substr(colon + 1))};
  if (place.file.empty() || (colon != std::string::npos && place.line < 1)) {
    throw InvalidProblem("--source: '" + text + "' is not FILE or FILE:LINE, like src/mine.cpp:12");
  }
  return place;
}

SourcePlace place_of(const std::string& kernel, const std::string& message,
                     const SourcePlace& given) {
  static const std::regex traceback(R"re(File "([^"]+)", line (\d{1,9}))re"),
      compiled(R"re(([^\s:;,()'"]+\.(?:cu|cuh|c|cc|cpp|cxx|h|hpp|py)):(\d{1,9}))re");
  for (const std::regex* pattern : {&traceback, &compiled}) {
    if (SourcePlace place = last_match(message, *pattern); !place.file.empty()) return place;
  }
  if (!given.file.empty()) return given;
  const std::size_t colon = kernel.find(':');
  if (colon == std::string::npos) return {};
  const std::string file = kernel.substr(0, colon);
  const bool named = file.find('/') != std::string::npos || file.find('.') != std::string::npos;
  return {named ? relative(file) : "", 0};
}

}  // namespace attest::certify
