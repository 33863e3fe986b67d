// flash2 through caches: 64 queries and keys, d = 8, blocks of 16 queries, one key at a time.
#include "core/testing/catch.hpp"
#include "io/replay/cache.hpp"
#include "io/replay/testing/traces.hpp"

namespace attest::io {
namespace {

constexpr std::uint32_t kN = 64, kD = 8, kBlock = 16;
// Q, O of a block, its scores and maxima, a row of K and one of V.
constexpr std::int64_t kPeak = kBlock * (2 * kD + 2) + 2 * kD;
constexpr std::int64_t kExplicitReads = kN * kD + (kN / kBlock) * 2 * kN * kD;

AccessTrace flash2() {
  const std::uint32_t Q = 0, K = kN * kD, V = 2 * K, O = 3 * K, S = 4 * K, m = S + kLongestLine;
  std::vector<Access> accesses;
  for (std::uint32_t first = 0; first < kN; first += kBlock) {
    for (std::uint32_t j = 0; j < kN; ++j) {
      for (std::uint32_t i = 0; i < kBlock; ++i) {
        for (std::uint32_t l = 0; l < kD; ++l) {
          accesses.push_back({Q + (first + i) * kD + l, Use::read});
          accesses.push_back({K + j * kD + l, Use::read});
        }
        accesses.push_back({S + i, Use::write});
      }
      for (std::uint32_t i = 0; i < kBlock; ++i) {
        accesses.push_back({m + i, Use::write});
        for (std::uint32_t c = 0; c < kD; ++c) {
          accesses.push_back({V + j * kD + c, Use::read});
          accesses.push_back({O + (first + i) * kD + c, j == 0 ? Use::write : Use::update});
        }
      }
    }
  }
  AccessTrace trace = testing::trace_of(std::move(accesses), m + kBlock);
  trace.scratch = S;
  return trace;
}

std::int64_t reads(const AccessTrace& trace, CacheSpec::Kind kind, std::int64_t words,
                   std::int64_t line_words = 1) {
  const std::int64_t whole = words / line_words * line_words;
  return replay(trace, {kind, whole, 1, line_words}).read_words().value();
}

TEST_CASE("least recently used thrashes at the schedule's own peak", "[io][replay]") {
  const AccessTrace trace = flash2();
  CHECK(kPeak == 304);
  CHECK(kExplicitReads == 4608);
  CHECK(reads(trace, CacheSpec::Kind::lru, kPeak) == 68616);
  // From a tenth more on it reads what explicit control reads.
  for (const std::int64_t words : {kPeak * 11 / 10, kPeak * 5 / 4, kPeak * 3 / 2, 2 * kPeak}) {
    CHECK(reads(trace, CacheSpec::Kind::lru, words) == kExplicitReads);
  }
}

TEST_CASE("Belady's at the peak reads no more than explicit control", "[io][replay]") {
  const AccessTrace trace = flash2();
  std::int64_t before = reads(trace, CacheSpec::Kind::belady, kPeak);
  CHECK(before <= kExplicitReads);
  for (std::int64_t words = kPeak; words <= 3 * kPeak; words += 101) {
    const std::int64_t now = reads(trace, CacheSpec::Kind::belady, words);
    CHECK(now <= before);
    CHECK(now <= reads(trace, CacheSpec::Kind::lru, words));
    before = now;
  }
}

TEST_CASE("lines of contiguous rows read the same words", "[io][replay]") {
  const AccessTrace trace = flash2();
  for (const std::int64_t line : {2, 4, 8}) {  // rows are whole lines
    for (const std::int64_t words : {kPeak * 11 / 10, kPeak * 3 / 2}) {
      CHECK(reads(trace, CacheSpec::Kind::lru, words, line) == kExplicitReads);
    }
  }
  // A line over two rows fetches a word of the next block's: more words, never fewer lines.
  CHECK(reads(trace, CacheSpec::Kind::lru, 2 * kPeak, 16) >= kExplicitReads);
}

}  // namespace
}  // namespace attest::io
