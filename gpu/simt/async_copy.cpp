#include "gpu/simt/async_copy.hpp"

#include <algorithm>
#include <cstring>

#include "gpu/simt/block.hpp"
#include "gpu/simt/warp.hpp"

namespace attest::simt {
namespace {

// Ends the running lane's copies of groups before `group`.
void end_copies(std::uint64_t group) {
  Block& block = Block::running();
  AsyncCopies& copies = block.copies();
  const auto end = std::find_if(copies.pending.begin(), copies.pending.end(),
                                [group](const auto& copy) { return copy.group >= group; });
  for (auto copy = copies.pending.begin(); copy != end; ++copy) {
    std::memcpy(copy->to, copy->from.data(), copy->bytes);
    block.shared().end_copy(copy->to, copy->bytes, block.lane().number);
  }
  copies.pending.erase(copies.pending.begin(), end);
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
