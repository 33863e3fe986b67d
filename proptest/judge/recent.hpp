#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <utility>

namespace attest::proptest {

/// Keeps what was used last, up to a number of bytes in all. One thread's: no lock.
/// [proptest/judge/recent_test]
template <class Value>
class Recent {
 public:
  /// A value larger than an eighth of `most_bytes` is never kept.
  explicit Recent(std::size_t most_bytes) : most_bytes_(most_bytes) {}

  /// Returns the kept value for which `matches` holds and makes it the last used; null when there
  /// is none. Cost: one call of `matches` a value.
  template <class Matches>
  std::shared_ptr<const Value> find(const Matches& matches) {
    for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
      if (!matches(*entry->value)) continue;
      entries_.splice(entries_.begin(), entries_, entry);
      return entries_.front().value;
    }
    return nullptr;
  }

  /// Keeps a value of about `bytes` and forgets those unused for longest.
  void add(std::shared_ptr<const Value> value, std::size_t bytes) {
    if (bytes > most_bytes_ / 8) return;
    entries_.push_front({std::move(value), bytes});
    bytes_ += bytes;
    while (bytes_ > most_bytes_) {
      bytes_ -= entries_.back().bytes;
      entries_.pop_back();
    }
  }

 private:
  struct Entry {
    std::shared_ptr<const Value> value;
    std::size_t bytes;
  };
  std::list<Entry> entries_;
  std::size_t most_bytes_, bytes_ = 0;
};

}  // namespace attest::proptest
