#include "certify/worker/process/protocol.hpp"

#include <sys/mman.h>
#include <sys/stat.h>

#include "certify/worker/process/transfer.hpp"

namespace attest::certify::worker {

Layout layout_of_messages() {
  Layout layout{"", sizeof(Control), sizeof(CallBlock)};
  put_text(layout.version, sizeof layout.version, ATTEST_BUILD_VERSION);
  return layout;
}

Control* map_control() {
  struct stat arena {};
  struct stat link {};
  if (fstat(kSocket, &link) != 0 || !S_ISSOCK(link.st_mode)) return nullptr;
  if (fstat(kArena, &arena) != 0) return nullptr;
  if (arena.st_size < static_cast<off_t>(kControlBytes)) return nullptr;
  void* const memory = mmap(nullptr, kControlBytes, PROT_READ | PROT_WRITE, MAP_SHARED, kArena, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<Control*>(memory);
}

}  // namespace attest::certify::worker
