#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

/// Replacement policies that are not what they pass for: the laws must refuse them.
namespace attest::io::testing {

/// Passes for least recently used, but a use does not make a line young again: first in, first out.
class FirstIn {
 public:
  FirstIn(std::int64_t sets, std::int64_t) : queues_(static_cast<std::size_t>(sets)) {}

  void insert(std::size_t set, std::uint32_t line, std::size_t) { queues_[set].push_back(line); }
  void use(std::size_t, std::uint32_t, std::size_t) {}
  std::uint32_t victim(std::size_t set) {
    const std::uint32_t line = queues_[set].front();
    queues_[set].erase(queues_[set].begin());
    return line;
  }

 private:
  std::vector<std::vector<std::uint32_t>> queues_;
};

/// Passes for Belady's, but takes the line that is needed next.
class NeededFirst {
 public:
  NeededFirst(std::int64_t, std::int64_t lines) : next_(static_cast<std::size_t>(lines)) {}

  void insert(std::size_t set, std::uint32_t line, std::size_t next) {
    held_.push_back(line);
    use(set, line, next);
  }
  void use(std::size_t, std::uint32_t line, std::size_t next) { next_[line] = next; }
  std::uint32_t victim(std::size_t) {
    const auto least = std::min_element(held_.begin(), held_.end(),
                                        [&](auto a, auto b) { return next_[a] < next_[b]; });
    const std::uint32_t line = *least;
    held_.erase(least);
    return line;
  }

 private:
  std::vector<std::size_t> next_;
  std::vector<std::uint32_t> held_;
};

}  // namespace attest::io::testing
