#include "certify/worker/process/arena.hpp"

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
  // The file keeps what was written. Not mremap: ThreadSanitizer does not see it, and takes the
  // next owner of the addresses left for a race.
  if (ftruncate(descriptor_, static_cast<off_t>(wanted)) == 0) {
    memory =
        mmap(nullptr, wanted, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, descriptor_, 0);
  }
  if (memory == MAP_FAILED) {
    throw InvalidProblem("cannot share " + std::to_string(wanted) + " bytes with a worker: " +
                         std::strerror(errno) + "; choose a smaller problem");
  }
  if (base_ != nullptr) munmap(base_, bytes_);
  base_ = static_cast<std::byte*>(memory);
  bytes_ = wanted;
}

void Arena::trim() {
  if (bytes_ <= kKeptBytes) return;
  if (munmap(base_ + kKeptBytes, bytes_ - kKeptBytes) != 0 ||
      ftruncate(descriptor_, kKeptBytes) != 0) {
    throw InternalError(std::string("arena: cannot be made smaller: ") + std::strerror(errno));
  }
  bytes_ = kKeptBytes;
}

}  // namespace attest::certify::worker
