#include "core/features/query_lengths.hpp"

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "core/error.hpp"
#include "core/features/axes_text.hpp"
#include "core/rng.hpp"

namespace attest {
namespace {

constexpr const char* kDrawn = "drawn_";

[[noreturn]] void refuse(const std::string& text) {
  throw InvalidProblem(
      "problem: query_lengths=" + text +
      " is neither drawn_ and a seed below 2^64 nor a length for each batch entry; "
      "write for example query_lengths=drawn_7 or query_lengths=5_0_9");
}

}  // namespace

std::int64_t QueryLengths::operator()(std::int64_t b, std::int64_t rows) const {
  if (kind == Kind::none || rows == 0) return rows;
  if (kind == Kind::given) return given[static_cast<std::size_t>(b)];
  // An eighth has no query, an eighth all of them.
  constexpr std::uint64_t kStream = 0x716c656eu, kTurns = 8;
  const std::uint64_t entry = mix(mix(seed, kStream), static_cast<std::uint64_t>(b));
  const std::uint64_t turn = entry % kTurns, drawn = mix(entry, kStream);
  if (turn == 0) return 0;
  if (turn == 1) return rows;
  return 1 + static_cast<std::int64_t>(drawn % static_cast<std::uint64_t>(rows));
}

std::string QueryLengths::to_string() const {
  if (kind == Kind::none) return "none";
  if (kind == Kind::drawn) return kDrawn + std::to_string(seed);
  std::string text;
  for (const std::int32_t length : given)
    text += (text.empty() ? "" : "_") + std::to_string(length);
  return text;
}

QueryLengths QueryLengths::parse(const std::string& text) {
  QueryLengths lengths;
  if (text == "none") return lengths;
  std::string_view rest = text;
  if (rest.starts_with(kDrawn)) {
    rest.remove_prefix(std::string_view(kDrawn).size());
    if (!read_number(rest, lengths.seed)) refuse(text);
    lengths.kind = Kind::drawn;
    return lengths;
  }
  for (bool more = true; more;) {
    const std::size_t end = std::min(rest.find('_'), rest.size());
    std::int32_t length = 0;
    if (!read_number(rest.substr(0, end), length) || length < 0) refuse(text);
    lengths.given.push_back(length);
    more = end < rest.size();
    rest.remove_prefix(more ? end + 1 : end);
  }
  lengths.kind = Kind::given;
  return lengths;
}

}  // namespace attest
