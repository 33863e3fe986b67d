#include "certify/worker/arena.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <string>

#include "core/error.hpp"

namespace attest::certify::worker {
namespace {

constexpr std::size_t kKeptBytes = std::size_t{1} << 24;

}  // namespace

Arena::Arena() : descriptor_(memfd_create("attest-arena", MFD_CLOEXEC)) {
  if (descriptor_ < 0) {
    throw InvalidProblem(std::string("no shared memory for a worker: ") + std::strerror(errno));
  }
  reserve(kControlBytes);
  new (base_) Control;
}

Arena::~Arena() {
  if (base_ != nullptr) munmap(base_, bytes_);
  close(descriptor_);
}

void Arena::reserve(std::size_t bytes) {
  if (bytes <= bytes_) return;
  const std::size_t wanted = std::max(bytes, 2 * bytes_);
  void* memory = MAP_FAILED;
  if (ftruncate(descriptor_, static_cast<off_t>(wanted)) == 0) {
    memory = base_ == nullptr ? mmap(nullptr, wanted, PROT_READ | PROT_WRITE,
                                     MAP_SHARED | MAP_NORESERVE, descriptor_, 0)
                              : mremap(base_, bytes_, wanted, MREMAP_MAYMOVE);
  }
  if (memory == MAP_FAILED) {
    throw InvalidProblem("cannot share " + std::to_string(wanted) + " bytes with a worker: " +
                         std::strerror(errno) + "; choose a smaller problem");
  }
  base_ = static_cast<std::byte*>(memory);
  bytes_ = wanted;
}

void Arena::trim() {
  if (bytes_ <= kKeptBytes) return;
  void* const memory = mremap(base_, bytes_, kKeptBytes, MREMAP_MAYMOVE);
  if (memory == MAP_FAILED || ftruncate(descriptor_, kKeptBytes) != 0) {
    throw InternalError(std::string("arena: cannot be made smaller: ") + std::strerror(errno));
  }
  base_ = static_cast<std::byte*>(memory);
  bytes_ = kKeptBytes;
}

}  // namespace attest::certify::worker
