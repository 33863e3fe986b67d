#include "gpu/simt/async/async_copy.hpp"

#include <algorithm>
#include <cstring>

#include "gpu/simt/block.hpp"
#include "gpu/simt/warp.hpp"

namespace attest::simt {
void AsyncCopies::end(std::uint64_t before, SharedMemory& shared, std::uint32_t lane) {
  const auto last = std::find_if(pending.begin(), pending.end(),
                                 [before](const Copy& copy) { return copy.group >= before; });
  for (auto copy = pending.begin(); copy != last; ++copy) {
    if (copy->bytes == kMostBytes) {
      std::memcpy(copy->to, copy->from.data(), kMostBytes);  // without a call
    } else {
      std::memcpy(copy->to, copy->from.data(), copy->bytes);
    }
    shared.end_copy(copy->to, copy->bytes, lane);
  }
  pending.erase(pending.begin(), last);
}

namespace {

// Ends the running lane's copies of groups before `group`.
void end_copies(std::uint64_t group) {
  Block& block = Block::running();
  block.copies().end(group, block.shared(), block.lane().number);
}

}  // namespace

void begin_async_copy(void* shared, const void* from, std::size_t bytes, SourceLine where) {
  Block& block = Block::running();
  require_aligned(shared, bytes, where);
  const auto finding = block.shared().begin_copy(shared, bytes, block.lane().number);
  if (finding) block.report_once(*finding, where);
  if (finding && finding->fault == Fault::out_of_bounds) return;
  AsyncCopies::Copy copy{shared, {}, bytes, block.copies().group};
  std::memcpy(copy.from.data(), from, bytes);
  block.copies().pending.push_back(copy);
}

void commit_async_copies() { ++Block::running().copies().group; }

void wait_for_async_copies(std::uint64_t most_pending) {
  const std::uint64_t groups = Block::running().copies().group;
  end_copies(groups - std::min(groups, most_pending));
}

void wait_for_all_async_copies() { end_copies(Block::running().copies().group + 1); }

}  // namespace attest::simt
