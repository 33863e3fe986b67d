#pragma once

#include <cstdint>
#include <limits>
#include <queue>
#include <vector>

#include "io/replay/cache.hpp"

/// The cache around a replacement policy. A policy knows the lines of each set and picks the one
/// that goes:
///
///   Policy(sets, lines)       lines: numbers of lines are below
///   insert(set, line, next)   the line has come; it is needed again at access `next`
///   use(set, line, next)      it was used
///   victim(set)               takes a line out and returns it
namespace attest::io {

/// No access comes that needs what is there.
constexpr std::size_t kNever = std::numeric_limits<std::size_t>::max();

/// The least recently used line goes.
class LeastRecentlyUsed {
 public:
  LeastRecentlyUsed(std::int64_t sets, std::int64_t lines)
      : ends_(static_cast<std::size_t>(sets)), links_(static_cast<std::size_t>(lines)) {}

  void insert(std::size_t set, std::uint32_t line, std::size_t) {
    Pair& ends = ends_[set];
    links_[line] = {ends.newer, kNone};
    (ends.newer == kNone ? ends.older : links_[ends.newer].newer) = line;
    ends.newer = line;
  }

  void use(std::size_t set, std::uint32_t line, std::size_t next) {
    take_out(set, line);
    insert(set, line, next);
  }

  std::uint32_t victim(std::size_t set) {
    const std::uint32_t line = ends_[set].older;
    take_out(set, line);
    return line;
  }

 private:
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
  struct Pair {
    std::uint32_t older = kNone, newer = kNone;
  };

  void take_out(std::size_t set, std::uint32_t line) {
    Pair& ends = ends_[set];
    const Pair link = links_[line];
    (link.older == kNone ? ends.older : links_[link.older].newer) = link.newer;
    (link.newer == kNone ? ends.newer : links_[link.newer].older) = link.older;
  }

  std::vector<Pair> ends_;   // the oldest and the newest line of each set
  std::vector<Pair> links_;  // a line's neighbours
};

/// The line whose content is needed last goes.
class NeededLast {
 public:
  NeededLast(std::int64_t, std::int64_t lines) : next_(static_cast<std::size_t>(lines), kGone) {}

  void insert(std::size_t set, std::uint32_t line, std::size_t next) { use(set, line, next); }
  void use(std::size_t, std::uint32_t line, std::size_t next) {
    next_[line] = next;
    heap_.push({next, line});
    if (heap_.size() > 2 * next_.size() + kSpare) drop_old_entries();
  }
  std::uint32_t victim(std::size_t) {
    while (next_[heap_.top().second] != heap_.top().first) heap_.pop();
    const std::uint32_t line = heap_.top().second;
    heap_.pop();
    next_[line] = kGone;
    return line;
  }

 private:
  static constexpr std::size_t kGone = kNever - 1;  // in no cache; no access has this number
  static constexpr std::size_t kSpare = 1024;

  void drop_old_entries() {
    heap_ = {};
    for (std::uint32_t line = 0; line < next_.size(); ++line) {
      if (next_[line] != kGone) heap_.push({next_[line], line});
    }
  }

  std::vector<std::size_t> next_;
  std::priority_queue<std::pair<std::size_t, std::uint32_t>> heap_;  // old entries stay behind
};

/// For each access, the next one that needs the content of its line, kNever if it is written anew
/// first or not used again.
std::vector<std::size_t> next_needs(const AccessTrace& trace, std::int64_t line_words);

/// The traffic of a cache with this policy.
template <class Policy>
CacheTraffic replay_with(const AccessTrace& trace, const CacheSpec& cache) {
  struct Line {
    std::uint64_t valid = 0, dirty = 0;  // a bit for each word
    bool held = false;
  };
  const std::int64_t length = cache.line_words, numbers = trace.words / length + 1;
  const auto sets = static_cast<std::size_t>(cache.sets());
  const auto capacity = static_cast<std::size_t>(cache.lines()) / sets;
  const std::vector<std::size_t> next = next_needs(trace, length);
  std::vector<Line> lines(static_cast<std::size_t>(numbers));
  std::vector<std::size_t> filled(sets);
  Policy policy(cache.sets(), numbers);
  CacheTraffic traffic;
  traffic.line_words = length;
  const auto write_back = [&](std::uint32_t number) {
    Line& line = lines[number];
    if (line.dirty != 0) {
      traffic.written_lines += 1;
      if (static_cast<std::int64_t>(number) * length >= trace.scratch) {
        traffic.scratch_written_lines += 1;
      }
    }
    line = {};
  };
  for (std::size_t time = 0; time < trace.accesses.size(); ++time) {
    const Access access = trace.accesses[time];
    const auto number = static_cast<std::uint32_t>(access.word / length);
    const std::size_t set = number % sets;
    Line& line = lines[number];
    if (line.held) {
      policy.use(set, number, next[time]);
    } else {
      if (filled[set] == capacity) {
        write_back(policy.victim(set));
      } else {
        ++filled[set];
      }
      line.held = true;
      policy.insert(set, number, next[time]);
    }
    const std::uint64_t word = std::uint64_t{1} << (access.word % length);
    if (access.use != Use::write && (line.valid & word) == 0) {
      traffic.read_lines += 1;
      line.valid = ~std::uint64_t{0};
    }
    line.valid |= word;
    if (access.use != Use::read) line.dirty |= word;
  }
  for (std::uint32_t number = 0; number < lines.size(); ++number) write_back(number);
  return traffic;
}

}  // namespace attest::io
