// Host functions behind the words of mbarrier.cuh.
#include "gpu/simt/async/mbarrier.hpp"
#include "gpu/simt/block.hpp"

namespace attest::simt {

void mbarrier_begin(const void* barrier, std::uint32_t count, SourceLine where) {
  Block& block = Block::running();
  block.mbarriers().init(block, barrier, count, where);
}

void mbarrier_end(const void* barrier, SourceLine where) {
  Block& block = Block::running();
  block.mbarriers().invalidate(block, barrier, where);
}

void mbarrier_arrival(const void* barrier, SourceLine where) {
  Block& block = Block::running();
  block.mbarriers().arrive(block, barrier, where);
}

void mbarrier_expectation(const void* barrier, std::uint32_t bytes, SourceLine where) {
  Block& block = Block::running();
  block.mbarriers().expect(block, barrier, bytes, where);
}

void mbarrier_wait_for(const void* barrier, std::uint32_t parity, SourceLine where) {
  Block& block = Block::running();
  if (!block.mbarriers().wait(block, barrier, parity, where)) {
    block.suspend("mbarrier.try_wait", where);
  }
}

void mbarrier_fence() {
  Block& block = Block::running();
  block.mbarriers().fence_init(block.lane().number, false);
}

void async_fence() {
  Block& block = Block::running();
  block.mbarriers().fence_init(block.lane().number, true);
  if (block.shared().is_checked()) block.shared().fence_async(block.lane().number);
}

}  // namespace attest::simt
