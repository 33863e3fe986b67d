#include "gpu/simt/memory/global_memory.hpp"

#include <atomic>
#include <cstring>

#include "core/error.hpp"
#include "gpu/simt/block.hpp"

namespace attest::simt {

int GlobalMemory::find(const void* pointer) const {
  const auto* byte = static_cast<const std::byte*>(pointer);
  for (std::size_t k = 0; k < ranges_.size(); ++k) {
    if (byte >= ranges_[k].data && byte < ranges_[k].data + ranges_[k].bytes) {
      return static_cast<int>(k);
    }
  }
  return -1;
}

Finding GlobalMemory::fault(int tensor, const void* pointer, std::size_t bytes, GlobalUse use,
                            std::uint32_t lane) const {
  const std::string verb = "lane " + std::to_string(lane) + (writes(use) ? " writes " : " reads ");
  if (tensor < 0 || static_cast<std::size_t>(tensor) >= ranges_.size()) {
    return {Fault::out_of_bounds, verb + "through a pointer to no tensor"};
  }
  const GlobalRange& range = ranges_[static_cast<std::size_t>(tensor)];
  const auto offset = static_cast<const std::byte*>(pointer) - range.data;
  if (range.data == nullptr || offset < 0 ||
      offset + static_cast<std::int64_t>(bytes) > range.bytes) {
    return {Fault::out_of_bounds, verb + std::to_string(bytes) + " bytes at byte " +
                                      std::to_string(offset) + " of '" + range.name +
                                      "', which has " +
                                      std::to_string(range.data == nullptr ? 0 : range.bytes)};
  }
  return {Fault::misaligned, verb + std::to_string(bytes) + " bytes of '" + range.name +
                                 "' at an address that is no multiple of that"};
}

namespace {

// Code that kernels run rarely stands apart from the code that they run for every word.
[[gnu::cold, gnu::noinline]] void report_access(Block& block, int tensor, const void* pointer,
                                                std::size_t bytes, GlobalUse use,
                                                SourceLine where) {
  Finding found = block.global().fault(tensor, pointer, bytes, use, block.lane().number);
  block.report(found.fault, std::move(found.text), where);
}

bool may_access(Block& block, int tensor, const void* pointer, std::size_t bytes,
                std::size_t alignment, GlobalUse use, SourceLine where) {
  if (!block.global().has(tensor, pointer, bytes, alignment)) {
    report_access(block, tensor, pointer, bytes, use, where);
    return false;
  }
  block.traffic(tensor).add(bytes, use);
  return true;
}
Block& running_block() {
  Block* const block = Block::current();
  if (block == nullptr) throw InternalError("global memory opened outside of an emulated kernel");
  return *block;
}

// A race goes on as it would on a device.
void look_for_races(Block& block, int tensor, const void* pointer, std::size_t bytes, GlobalUse use,
                    SourceLine where) {
  GlobalRaces* const races = block.races();
  if (races == nullptr) return;
  const GlobalRange& range = block.global().ranges()[static_cast<std::size_t>(tensor)];
  const auto found = races->check(range, pointer, bytes, use,
                                  {block.index(), block.lane().number, &block.shared().order()});
  if (found) block.report_once(*found, where);
}

bool read(Block& block, int tensor, const void* from, void* to, std::size_t bytes,
          std::size_t alignment, SourceLine where) {
  const bool may = may_access(block, tensor, from, bytes, alignment, GlobalUse::read, where);
  if (may) {
    std::memcpy(to, from, bytes);
  } else {
    std::memset(to, 0, bytes);
  }
  return may;
}

}  // namespace

void global_read(int tensor, const void* from, void* to, std::size_t bytes, SourceLine where) {
  Block& block = running_block();
  if (read(block, tensor, from, to, bytes, bytes, where)) {
    look_for_races(block, tensor, from, bytes, GlobalUse::read, where);
  }
}

void global_write(int tensor, void* to, const void* from, std::size_t bytes, SourceLine where) {
  Block& block = running_block();
  if (!may_access(block, tensor, to, bytes, bytes, GlobalUse::write, where)) return;
  std::memcpy(to, from, bytes);
  look_for_races(block, tensor, to, bytes, GlobalUse::write, where);
}

void global_read_row(int tensor, const void* from, void* to, std::size_t bytes, SourceLine where) {
  read(running_block(), tensor, from, to, bytes, 1, where);
}

void global_write_row(int tensor, void* to, const void* from, std::size_t bytes, SourceLine where) {
  Block& block = running_block();
  if (may_access(block, tensor, to, bytes, 1, GlobalUse::write, where)) {
    std::memcpy(to, from, bytes);
  }
}

void global_add(int tensor, float* to, float value, SourceLine where) {
  Block& block = running_block();
  if (!may_access(block, tensor, to, sizeof *to, sizeof *to, GlobalUse::add, where)) return;
  std::atomic_ref<float>(*to).fetch_add(value, std::memory_order_relaxed);
  look_for_races(block, tensor, to, sizeof *to, GlobalUse::add, where);
}

}  // namespace attest::simt
