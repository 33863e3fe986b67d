#include "io/replay/cache.hpp"

#include <charconv>

#include "core/error.hpp"
#include "core/text/suggest.hpp"
#include "io/replay/replacement.hpp"

namespace attest::io {
namespace {

using Kind = CacheSpec::Kind;

std::string_view name(Kind kind) {
  switch (kind) {
    case Kind::lru:
      return "lru";
    case Kind::belady:
      return "belady";
    case Kind::set_associative:
      return "set";
  }
  throw InternalError("CacheSpec::Kind out of range");
}

[[noreturn]] void refuse(std::string_view text, const std::string& why) {
  throw InvalidProblem("cache: '" + std::string(text) + "'" + why);
}

Kind kind_of(std::string_view word, std::string_view text) {
  std::vector<std::string> names;
  for (const Kind kind : {Kind::lru, Kind::belady, Kind::set_associative}) {
    if (word == name(kind)) return kind;
    names.emplace_back(name(kind));
  }
  refuse(text, " is of no known kind" + did_you_mean(word, names) +
                   " (lru:WORDS belady:WORDS set:WORDS,ways=W, each with ,line=L)");
}

std::int64_t number(std::string_view digits, const char* what, std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size() || value < 1) {
    refuse(text, ": " + std::string(what) + " '" + std::string(digits) +
                     "' is not a whole number from 1 on");
  }
  return value;
}

void require_shape(const CacheSpec& cache, std::string_view text) {
  if (cache.line_words > kLongestLine) {
    refuse(text, ": line=" + std::to_string(cache.line_words) + " exceeds " +
                     std::to_string(kLongestLine) + " words");
  }
  const bool sets = cache.kind == Kind::set_associative;
  const Words unit = Words(sets ? cache.ways : 1) * cache.line_words;
  if (unit > cache.words || cache.words % unit.value() != 0) {
    refuse(text, ": " + std::to_string(cache.words) + " words are no whole number of " +
                     (sets ? "sets of " : "lines of ") + std::to_string(unit.value()) +
                     "; give a multiple");
  }
}

}  // namespace

std::string CacheSpec::to_string() const {
  std::string text = std::string(name(kind)) + ":" + std::to_string(words);
  if (kind == Kind::set_associative) text += ",ways=" + std::to_string(ways);
  if (line_words != 1) text += ",line=" + std::to_string(line_words);
  return text;
}

CacheSpec CacheSpec::parse(std::string_view text) {
  const std::size_t colon = text.find(':');
  CacheSpec cache;
  cache.kind = kind_of(text.substr(0, colon), text);
  if (colon == std::string_view::npos) refuse(text, " has no size; write lru:WORDS");
  std::string_view rest = text.substr(colon + 1);
  const auto next_part = [&rest] {
    const std::size_t comma = rest.find(',');
    const std::string_view part = rest.substr(0, comma);
    rest = comma == std::string_view::npos ? std::string_view{} : rest.substr(comma + 1);
    return part;
  };
  cache.words = number(next_part(), "size", text);
  bool ways_given = false;
  while (!rest.empty()) {
    const std::string_view part = next_part();
    if (part.substr(0, 5) == "line=") {
      cache.line_words = number(part.substr(5), "line", text);
    } else if (part.substr(0, 5) == "ways=" && cache.kind == Kind::set_associative) {
      cache.ways = number(part.substr(5), "ways", text);
      ways_given = true;
    } else {
      refuse(text, ": '" + std::string(part) + "' is unknown (" +
                       (cache.kind == Kind::set_associative ? "ways=W, " : "") + "line=L)");
    }
  }
  if (cache.kind == Kind::set_associative && !ways_given) {
    refuse(text, " has no ways; write set:WORDS,ways=W");
  }
  require_shape(cache, text);
  return cache;
}

std::vector<std::size_t> next_needs(const AccessTrace& trace, std::int64_t line_words) {
  std::vector<std::size_t> needs(trace.accesses.size(), kNever);
  std::vector<std::size_t> later(static_cast<std::size_t>(trace.words / line_words) + 1, kNever);
  for (std::size_t time = trace.accesses.size(); time-- > 0;) {
    const Access access = trace.accesses[time];
    std::size_t& next = later[static_cast<std::size_t>(access.word / line_words)];
    needs[time] = next;
    // Words of a longer line, beside the one that is written, may be needed.
    next = access.use == Use::write && line_words == 1 ? kNever : time;
  }
  return needs;
}

CacheTraffic replay(const AccessTrace& trace, const CacheSpec& cache) {
  if (cache.kind == Kind::belady) return replay_with<NeededLast>(trace, cache);
  return replay_with<LeastRecentlyUsed>(trace, cache);
}

}  // namespace attest::io
