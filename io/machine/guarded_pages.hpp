#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

/// Slow memory on pages of its own that are closed but while a machine loads or stores: a schedule
/// that reads or writes past the count dies of a page fault at the place where it does.
namespace attest::io {

/// State of slow memory between loads and stores.
enum class SlowGuard : std::uint8_t { open, closed };

/// closed in builds with assertions (without NDEBUG), open in others.
SlowGuard default_guard();

/// Whole pages, zero at first and open until close().
class GuardedPages {
 public:
  /// Throws std::bad_alloc when there is no memory.
  explicit GuardedPages(std::size_t bytes);
  GuardedPages(const GuardedPages&) = delete;
  GuardedPages& operator=(const GuardedPages&) = delete;
  ~GuardedPages();

  std::byte* data() const { return data_; }
  std::size_t size() const { return bytes_; }
  void open() const;
  void close() const;

 private:
  std::byte* data_;
  std::size_t bytes_;
};

/// Opens the guarded pages that an address lies on, if it lies on any, until it dies.
/// [schedules/guard_test]
class OpenPages {
 public:
  explicit OpenPages(const void* address);
  OpenPages(const OpenPages&) = delete;
  OpenPages& operator=(const OpenPages&) = delete;
  ~OpenPages();

 private:
  const GuardedPages* pages_;
};

/// Float32 words in slow memory.
class SlowFloats {
 public:
  /// Closed from the beginning, with SlowGuard::closed; then all of them have this value.
  SlowFloats(std::size_t count, float value, SlowGuard guard);

  /// The same with the values given.
  SlowFloats(std::vector<float> values, SlowGuard guard);

  SlowFloats(const SlowFloats&) = delete;
  SlowFloats& operator=(const SlowFloats&) = delete;

  /// Where they lie. Closed pages may only be accessed through SlowAccess.
  float* data();
  const float* data() const { return const_cast<SlowFloats*>(this)->data(); }

 private:
  std::vector<float> floats_;
  std::unique_ptr<GuardedPages> pages_;
};

}  // namespace attest::io
