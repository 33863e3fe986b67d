#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "io/machine/words.hpp"
#include "io/replay/accesses.hpp"

/// Caches that decide themselves what to hold, run over the accesses of a schedule.
namespace attest::io {

/// A cache and its spelling:
///
///   lru:WORDS[,line=L]         fully associative, the least recently used line goes
///   belady:WORDS[,line=L]      fully associative, the line needed last goes (Belady 1966, OPT)
///   set:WORDS,ways=W[,line=L]  WORDS / (W L) sets by address, the least recently used of a set
///   goes
///
/// L words to a line, 1 when it is left out. All caches write back: a line that was written is
/// written to slow memory when it goes, and at the end.
struct CacheSpec {
  enum class Kind : std::uint8_t { lru, belady, set_associative };

  Kind kind = Kind::lru;
  std::int64_t words = 1;
  std::int64_t ways = 1;  // of set_associative
  std::int64_t line_words = 1;

  std::int64_t lines() const { return words / line_words; }
  std::int64_t sets() const {
    return kind == Kind::set_associative ? lines() / ways : std::int64_t{1};
  }

  std::string to_string() const;

  /// Requires: at least one line, from 1 to 64 words to a line, words a multiple of the line and,
  /// with sets, of ways times the line. Else throws InvalidProblem naming the key.
  /// [io/replay/cache_test "spelling"]
  static CacheSpec parse(std::string_view text);

  friend bool operator==(const CacheSpec&, const CacheSpec&) = default;
};

/// Traffic of a cache. Reads are whole lines; a word that is written anew does not fetch its line,
/// the words beside it do when they are read.
struct CacheTraffic {
  Words read_lines, written_lines;
  Words scratch_written_lines;  // of those written, lines of scratch
  std::int64_t line_words = 1;

  Words read_words() const { return read_lines * line_words; }
  Words written_words() const { return written_lines * line_words; }
  Words scratch_written_words() const { return scratch_written_lines * line_words; }

  friend bool operator==(const CacheTraffic&, const CacheTraffic&) = default;
};

/// Runs the accesses through the cache.
///
/// Ensures:  belady with lines of one word reads the fewest words that any replacement can
///           [io/replay/laws_test "the fewest"]; lru with more lines never fetches more
///           [io/replay/laws_test "inclusion"]
/// Cost:     linear in the accesses, times log(lines) for belady.
/// Source:   Belady 1966; Mattson et al. 1970 (inclusion).
CacheTraffic replay(const AccessTrace& trace, const CacheSpec& cache);

}  // namespace attest::io
