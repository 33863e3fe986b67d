// Laws of replacement, on random accesses; broken policies are refused by them.
#include <rapidcheck.h>

#include <map>
#include <set>

#include "core/testing/catch.hpp"
#include "io/replay/replacement.hpp"
#include "io/replay/testing/broken_replacement.hpp"
#include "io/replay/testing/traces.hpp"

namespace attest::io {
namespace {

using testing::trace_of;

AccessTrace random_trace(std::uint32_t words, std::size_t most) {
  const auto length = *rc::gen::inRange<std::size_t>(0, most + 1);
  const auto access =
      rc::gen::construct<Access>(rc::gen::inRange<std::uint32_t>(0, words),
                                 rc::gen::element(Use::read, Use::read, Use::update, Use::write));
  return trace_of(*rc::gen::container<std::vector<Access>>(length, access));
}

template <class Policy>
std::int64_t reads(const AccessTrace& trace, std::int64_t lines, std::int64_t line_words = 1) {
  return replay_with<Policy>(trace, {CacheSpec::Kind::lru, lines * line_words, 1, line_words})
      .read_lines.value();
}

// The fewest reads by trying every victim.
std::int64_t fewest_reads(const AccessTrace& trace, std::size_t capacity) {
  // Sets of held words, and how many reads each took at least.
  std::map<std::set<std::uint32_t>, std::int64_t> reached{{{}, 0}};
  for (const Access& access : trace.accesses) {
    std::map<std::set<std::uint32_t>, std::int64_t> after;
    const auto reach = [&after](const std::set<std::uint32_t>& held, std::int64_t count) {
      const auto [found, added] = after.emplace(held, count);
      found->second = std::min(found->second, count);
    };
    for (const auto& [held, count] : reached) {
      if (held.count(access.word) > 0) {
        reach(held, count);
        continue;
      }
      const std::int64_t paid = count + (access.use == Use::write ? 0 : 1);
      std::set<std::uint32_t> with = held;
      with.insert(access.word);
      if (with.size() <= capacity) reach(with, paid);
      for (const std::uint32_t victim : held) {
        std::set<std::uint32_t> without = with;
        without.erase(victim);
        if (without.size() <= capacity) reach(without, paid);
      }
    }
    reached = std::move(after);
  }
  std::int64_t least = reached.begin()->second;
  for (const auto& [held, count] : reached) least = std::min(least, count);
  return least;
}

template <class Policy>
bool reads_fewest(const AccessTrace& trace, std::int64_t capacity) {
  return reads<Policy>(trace, capacity) == fewest_reads(trace, static_cast<std::size_t>(capacity));
}

template <class Policy>
bool more_lines_read_no_more(const AccessTrace& trace, std::int64_t line_words) {
  for (std::int64_t lines = 1; lines < 8; ++lines) {
    if (reads<Policy>(trace, lines + 1, line_words) > reads<Policy>(trace, lines, line_words)) {
      return false;
    }
  }
  return true;
}

TEST_CASE("Belady's reads the fewest words", "[io][replay]") {
  CHECK(rc::check("as trying every victim", [] {
    const auto capacity = *rc::gen::inRange<std::int64_t>(1, 4);
    RC_ASSERT(reads_fewest<NeededLast>(random_trace(5, 14), capacity));
  }));
}

TEST_CASE("no policy reads fewer words than Belady's", "[io][replay]") {
  CHECK(rc::check("whatever the capacity", [] {
    const AccessTrace trace = random_trace(12, 200);
    const auto capacity = *rc::gen::inRange<std::int64_t>(1, 12);
    const std::int64_t fewest = reads<NeededLast>(trace, capacity);
    RC_ASSERT(fewest <= reads<LeastRecentlyUsed>(trace, capacity));
    RC_ASSERT(fewest <= reads<testing::FirstIn>(trace, capacity));
    RC_ASSERT(fewest <= reads<testing::NeededFirst>(trace, capacity));
  }));
}

TEST_CASE("inclusion: more lines never read more", "[io][replay]") {
  CHECK(rc::check("least recently used and Belady's", [] {
    const auto line = *rc::gen::element<std::int64_t>(1, 2, 4);
    const AccessTrace trace = random_trace(24, 200);
    RC_ASSERT(more_lines_read_no_more<LeastRecentlyUsed>(trace, line));
    RC_ASSERT(more_lines_read_no_more<NeededLast>(trace, 1));
  }));
}

TEST_CASE("least recently used against Belady's with less (Sleator and Tarjan 1985)",
          "[io][replay]") {
  CHECK(rc::check("LRU_M <= M / (M - h + 1) OPT_h + h", [] {
    AccessTrace trace = random_trace(12, 200);
    for (Access& access : trace.accesses) access.use = Use::read;
    const auto M = *rc::gen::inRange<std::int64_t>(1, 10);
    const auto h = *rc::gen::inRange<std::int64_t>(1, M + 1);
    RC_ASSERT(reads<LeastRecentlyUsed>(trace, M) * (M - h + 1) <=
              M * reads<NeededLast>(trace, h) + h * (M - h + 1));
  }));
}

TEST_CASE("what a cache moves", "[io][replay]") {
  CHECK(rc::check("words, lines, sets", [] {
    const AccessTrace trace = random_trace(24, 120);
    const auto ways = *rc::gen::inRange<std::int64_t>(1, 5);
    const auto line = *rc::gen::element<std::int64_t>(1, 2, 4);
    const CacheSpec sets{CacheSpec::Kind::set_associative, 4 * ways * line, ways, line};
    const CacheSpec one_set{CacheSpec::Kind::set_associative, ways * line, ways, line};
    const CacheSpec lru{CacheSpec::Kind::lru, ways * line, 1, line};
    RC_ASSERT(replay(trace, one_set) == replay(trace, lru));
    // Lines read are at least the lines that are needed before anything is put in them, lines
    // written at least those that are changed.
    std::set<std::uint32_t> needed, made, changed;
    for (const Access& access : trace.accesses) {
      if (access.use != Use::write && made.count(access.word) == 0) {
        needed.insert(access.word / static_cast<std::uint32_t>(line));
      }
      made.insert(access.word);
      if (access.use != Use::read) {
        changed.insert(access.word / static_cast<std::uint32_t>(line));
      }
    }
    for (const CacheSpec& cache : {sets, one_set, lru}) {
      const CacheTraffic traffic = replay(trace, cache);
      RC_ASSERT(traffic.read_lines >= static_cast<std::int64_t>(needed.size()));
      RC_ASSERT(traffic.written_lines >= static_cast<std::int64_t>(changed.size()));
    }
    // A cache that holds everything reads and writes just those.
    const CacheTraffic all = replay(trace, {CacheSpec::Kind::lru, 32 * line, 1, line});
    RC_ASSERT(all.read_lines == static_cast<std::int64_t>(needed.size()));
    RC_ASSERT(all.written_lines == static_cast<std::int64_t>(changed.size()));
  }));
}

TEST_CASE("broken policies are refused", "[io][replay]") {
  // Belady's anomaly: with four lines first in, first out reads more than with three.
  const AccessTrace anomaly = testing::reads({1, 2, 3, 4, 1, 2, 5, 1, 2, 3, 4, 5});
  CHECK_FALSE(more_lines_read_no_more<testing::FirstIn>(anomaly, 1));
  CHECK(more_lines_read_no_more<LeastRecentlyUsed>(anomaly, 1));
  const AccessTrace cycle = testing::reads({0, 1, 2, 0, 1, 2});
  CHECK_FALSE(reads_fewest<testing::NeededFirst>(cycle, 2));
  CHECK_FALSE(reads_fewest<LeastRecentlyUsed>(cycle, 2));
  CHECK(reads_fewest<NeededLast>(cycle, 2));
}

}  // namespace
}  // namespace attest::io
