#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <string>

#include "core/error.hpp"
#include "gpu/simt/fiber/fiber.hpp"

namespace attest::simt {
namespace {

std::size_t page_bytes() {
  static const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

// Closed pages of all blocks of the process.
std::atomic<std::size_t> closed_pages{0};

}  // namespace

// A closed page, the stack, a page for where it begins.
std::size_t FiberStacks::stride() { return page_bytes() + kStackBytes + page_bytes(); }

FiberStacks::FiberStacks(std::size_t count) : count_(count) {
  constexpr std::size_t kMostClosed = 16384, kSparse = 32;
  mapped_ = mmap(nullptr, count * stride(), PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped_ == MAP_FAILED) {
    throw InternalError("no memory for the stacks of " + std::to_string(count) + " emulated lanes");
  }
  const std::size_t interval = closed_pages.fetch_add(count) + count <= kMostClosed ? 1 : kSparse;
  closed_ = (count + interval - 1) / interval;
  closed_pages -= count - closed_;
  for (std::size_t k = 0; k < count; k += interval) {
    if (mprotect(static_cast<char*>(mapped_) + k * stride(), page_bytes(), PROT_NONE) != 0) {
      munmap(mapped_, count * stride());
      closed_pages -= closed_;
      throw InternalError("no mappings left for the stacks of " + std::to_string(count) +
                          " emulated lanes; run fewer blocks at a time");
    }
  }
}

FiberStacks::~FiberStacks() {
  munmap(mapped_, count_ * stride());
  closed_pages -= closed_;
}

void* FiberStacks::lowest(std::size_t k) const {
  constexpr std::size_t kPlaces = 16, kApart = 256;
  return static_cast<char*>(mapped_) + k * stride() + page_bytes() + k % kPlaces * kApart;
}

}  // namespace attest::simt
