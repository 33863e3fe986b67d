#include "io/machine/guarded_pages.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <iterator>
#include <map>
#include <mutex>
#include <new>
#include <utility>

#include "core/error.hpp"

namespace attest::io {
namespace {

// Live pages by their first address.
struct Table {
  std::mutex mutex;
  std::map<const std::byte*, const GuardedPages*, std::less<>> pages;
  std::atomic<std::size_t> count{0};
};

Table& table() {
  static Table live;
  return live;
}

std::size_t whole_pages(std::size_t bytes) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return (std::max<std::size_t>(bytes, 1) + page - 1) / page * page;
}

void protect(std::byte* data, std::size_t bytes, int how) {
  if (mprotect(data, bytes, how) != 0) throw InternalError("mprotect of slow memory failed");
}

}  // namespace

SlowGuard default_guard() {
#ifdef NDEBUG
  return SlowGuard::open;
#else
  return SlowGuard::closed;
#endif
}

GuardedPages::GuardedPages(std::size_t bytes) : bytes_(whole_pages(bytes)) {
  void* memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  data_ = static_cast<std::byte*>(memory);
  Table& live = table();
  const std::lock_guard<std::mutex> lock(live.mutex);
  live.pages[data_] = this;
  ++live.count;
}

GuardedPages::~GuardedPages() {
  Table& live = table();
  const std::lock_guard<std::mutex> lock(live.mutex);
  live.pages.erase(data_);
  --live.count;
  munmap(data_, bytes_);
}

void GuardedPages::open() const { protect(data_, bytes_, PROT_READ | PROT_WRITE); }
void GuardedPages::close() const { protect(data_, bytes_, PROT_NONE); }

OpenPages::OpenPages(const void* address) : pages_(nullptr) {
  Table& live = table();
  if (live.count == 0) return;
  const std::lock_guard<std::mutex> lock(live.mutex);
  const auto* place = static_cast<const std::byte*>(address);
  const auto next = live.pages.upper_bound(place);
  if (next == live.pages.begin()) return;
  const GuardedPages* pages = std::prev(next)->second;
  if (place >= pages->data() + pages->size()) return;
  pages->open();
  pages_ = pages;
}

OpenPages::~OpenPages() {
  if (pages_ != nullptr) pages_->close();
}

SlowFloats::SlowFloats(std::size_t count, float value, SlowGuard guard)
    : SlowFloats(std::vector<float>(count, value), guard) {}

SlowFloats::SlowFloats(std::vector<float> values, SlowGuard guard) : floats_(std::move(values)) {
  if (guard == SlowGuard::open) return;
  pages_ = std::make_unique<GuardedPages>(floats_.size() * sizeof(float));
  if (!floats_.empty()) std::memcpy(pages_->data(), floats_.data(), floats_.size() * sizeof(float));
  floats_ = {};
  pages_->close();
}

float* SlowFloats::data() {
  return pages_ == nullptr ? floats_.data() : reinterpret_cast<float*>(pages_->data());
}

}  // namespace attest::io
