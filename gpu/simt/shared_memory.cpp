#include "gpu/simt/shared_memory.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

namespace attest::simt {
namespace {

// Alignment of a swizzle atom, the largest that any instruction asks for.
constexpr std::size_t kAlignment = 1024;
constexpr int kNaNByte = 0xFF;  // in every floating-point type

std::size_t rounded_up(std::size_t value, std::size_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

}  // namespace

SharedMemory::SharedMemory()
    : bytes_(static_cast<std::byte*>(std::aligned_alloc(kAlignment, kMostBytes))) {
  if (bytes_ == nullptr) throw std::bad_alloc();
}

SharedMemory::~SharedMemory() { std::free(bytes_); }

void SharedMemory::begin(std::int64_t dynamic_bytes, std::int64_t limit_bytes, SharedChecks checks,
                         std::uint32_t warps) {
  used_ = static_cast<std::size_t>(dynamic_bytes);
  limit_ = std::min(static_cast<std::size_t>(limit_bytes), kMostBytes);
  variables_.clear();
  std::memset(bytes_, kNaNByte, std::min(used_, kMostBytes));
  checks_ = checks;
  if (checks == SharedChecks::on) {
    shadows_.resize(kMostBytes / kGranule);
    forget(0, std::min(used_, kMostBytes));
  }
  block_epoch_ = 1;
  warp_epochs_.assign(warps, 1);
}

void* SharedMemory::variable(const void* tag, std::size_t bytes, std::size_t alignment) {
  for (const Variable& known : variables_) {
    if (known.tag == tag) return bytes_ + known.offset;
  }
  constexpr std::size_t kLeastAlignment = 16;  // of the widest load of a lane
  const std::size_t offset = rounded_up(used_, std::max(alignment, kLeastAlignment));
  if (offset + bytes > limit_) return nullptr;
  std::memset(bytes_ + offset, kNaNByte, bytes);
  if (checks_ == SharedChecks::on) forget(offset, offset + bytes);
  used_ = offset + bytes;
  variables_.push_back({tag, offset});
  return bytes_ + offset;
}

// What an earlier block did between two offsets, the granule of the last byte included.
void SharedMemory::forget(std::size_t begin, std::size_t end) {
  const auto first = shadows_.begin() + static_cast<std::ptrdiff_t>(begin / kGranule);
  const auto last = shadows_.begin() + static_cast<std::ptrdiff_t>((end + kGranule - 1) / kGranule);
  std::fill(first, last, Shadow{});
}

std::string SharedMemory::describe(std::size_t offset, std::size_t bytes) const {
  return std::to_string(bytes) + " bytes at shared offset " + std::to_string(offset);
}

bool SharedMemory::unordered_write(const Shadow& shadow, Accessor by) const {
  if (shadow.written == Shadow::Written::never || shadow.write_block != block_epoch_ ||
      shadow.writer == by.lane) {
    return false;
  }
  const bool same_warp = shadow.writer / 32U == by.warp;
  return !same_warp || shadow.write_warp == warp_epochs_[by.warp];
}

bool SharedMemory::unordered_read(const Shadow& shadow, Accessor by) const {
  if (shadow.read_block != block_epoch_) return false;
  if (shadow.readers_in_block || shadow.reader / 32U != by.warp) return true;
  return shadow.read_warp == warp_epochs_[by.warp] &&
         (shadow.readers_in_warp || shadow.reader != by.lane);
}

void SharedMemory::note_read(Shadow& shadow, Accessor by) const {
  const std::uint32_t epoch = warp_epochs_[by.warp];
  if (shadow.read_block != block_epoch_) {
    shadow.read_block = block_epoch_;
    shadow.readers_in_block = false;
  } else if (shadow.reader / 32U != by.warp) {
    shadow.readers_in_block = true;
    return;
  } else if (shadow.read_warp == epoch) {
    shadow.readers_in_warp |= shadow.reader != by.lane;
    return;
  }
  shadow.read_warp = epoch;
  shadow.reader = static_cast<std::uint16_t>(by.lane);
  shadow.readers_in_warp = false;
}

void SharedMemory::note_write(Shadow& shadow, Accessor by, Shadow::Written how) const {
  shadow.written = how;
  shadow.write_block = block_epoch_;
  shadow.write_warp = warp_epochs_[by.warp];
  shadow.writer = static_cast<std::uint16_t>(by.lane);
}

std::string SharedMemory::check(const void* pointer, std::size_t bytes, Access access,
                                std::uint32_t lane, std::uint32_t warp, Fault& fault) {
  const auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(pointer) - bytes_);
  const bool reads = access == Access::read;
  const auto found = [&](Fault kind, const std::string& what) {
    fault = kind;
    return "lane " + std::to_string(lane) + (reads ? " reads " : " writes ") +
           describe(offset, bytes) + what;
  };
  if (offset + bytes > used_) {
    return found(Fault::out_of_bounds, " of " + std::to_string(used_));
  }
  if (checks_ == SharedChecks::off) return "";
  std::string text;
  const Accessor by{lane, warp};
  const bool atomic = access == Access::atomic;
  for (std::size_t g = offset / kGranule; g <= (offset + bytes - 1) / kGranule; ++g) {
    Shadow& shadow = shadows_[g];
    using Written = Shadow::Written;
    const std::string other = std::to_string(shadow.writer);
    if (text.empty()) {
      if (shadow.written == Written::copying) {
        text = found(Fault::async_pending,
                     ", to which lane " + other + " copies asynchronously and has not yet waited");
      } else if (reads && shadow.written == Written::never) {
        text = found(Fault::uninitialised, ", which nothing has written");
      } else if (unordered_write(shadow, by) && !(atomic && shadow.written == Written::atomic)) {
        text = found(Fault::race, ", which lane " + other + " wrote; nothing orders the two");
      } else if (!reads && unordered_read(shadow, by)) {
        text = found(Fault::race, ", which lane " + std::to_string(shadow.reader) +
                                      " read; nothing orders the two");
      }
    }
    if (shadow.written == Written::copying) continue;
    if (reads) {
      note_read(shadow, by);
    } else {
      note_write(shadow, by, atomic ? Written::atomic : Written::plain);
    }
  }
  return text;
}

std::string SharedMemory::begin_copy(const void* pointer, std::size_t bytes, std::uint32_t lane,
                                     Fault& fault) {
  const auto warp = lane / 32U;
  std::string text = check(pointer, bytes, Access::write, lane, warp, fault);
  if (checks_ == SharedChecks::off || fault == Fault::out_of_bounds) return text;
  const auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(pointer) - bytes_);
  for (std::size_t g = offset / kGranule; g <= (offset + bytes - 1) / kGranule; ++g) {
    note_write(shadows_[g], {lane, warp}, Shadow::Written::copying);
  }
  return text;
}

void SharedMemory::end_copy(const void* pointer, std::size_t bytes, std::uint32_t lane,
                            std::uint32_t warp) {
  if (checks_ == SharedChecks::off) return;
  const auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(pointer) - bytes_);
  for (std::size_t g = offset / kGranule; g <= (offset + bytes - 1) / kGranule; ++g) {
    note_write(shadows_[g], {lane, warp}, Shadow::Written::plain);
  }
}

}  // namespace attest::simt
