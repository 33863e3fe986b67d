#include "certify/worker/conduct/call_memory.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "certify/worker/process/transfer.hpp"
#include "core/error.hpp"

namespace attest::certify::worker {
namespace {

constexpr std::uint64_t kGuardBytes = std::uint64_t{1} << 16;
constexpr std::byte kPoison{0xff};

std::uint64_t page_bytes() {
  static const auto bytes = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

std::uint64_t rounded_up(std::uint64_t value, std::uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

std::string hex(std::uint64_t value) {
  char digits[32];
  std::snprintf(digits, sizeof digits, "0x%llx", static_cast<unsigned long long>(value));
  return digits;
}

}  // namespace

CallMemory::CallMemory(Arena& arena, std::uint64_t first)
    : arena_(arena),
      first_(first),
      next_address_(first + kGuardBytes),
      next_offset_(kControlBytes) {
  buffers_.reserve(kMostSegments);
}

std::size_t CallMemory::place(std::string_view name, std::size_t bytes, Access access, Side side) {
  if (buffers_.size() == kMostSegments) throw InternalError("worker: too many buffers in one call");
  Buffer buffer;
  buffer.name = name;
  buffer.access = access;
  buffer.side = side;
  buffer.size = bytes;
  const std::uint64_t aligned = rounded_up(bytes, kAlignment);
  const std::uint64_t pages = std::max(rounded_up(aligned, page_bytes()), page_bytes());
  buffer.pages_begin = next_address_;
  buffer.pages_end = next_address_ + pages;
  buffer.address = buffer.pages_end - aligned;
  buffer.offset = next_offset_;
  next_address_ = buffer.pages_end + kGuardBytes;
  next_offset_ += pages;
  arena_.reserve(next_offset_);
  std::byte* const base = arena_.at(buffer.offset);
  const std::uint64_t before = buffer.address - buffer.pages_begin;
  std::fill_n(base, before, kPoison);
  std::fill_n(base + before + bytes, pages - before - bytes, kPoison);
  buffers_.push_back(buffer);
  return buffers_.size() - 1;
}

std::byte* CallMemory::bytes(std::size_t index) const {
  const Buffer& buffer = buffers_[index];
  return arena_.at(buffer.offset + (buffer.address - buffer.pages_begin));
}

std::uint64_t CallMemory::publish() const {
  Control& control = arena_.control();
  control.segment_count = static_cast<std::uint32_t>(buffers_.size());
  for (std::size_t k = 0; k < buffers_.size(); ++k) {
    const Buffer& buffer = buffers_[k];
    const std::uint64_t pages = buffer.pages_end - buffer.pages_begin;
    Segment& segment = control.segments[k];
    segment = {
        buffer.pages_begin, buffer.offset, pages, buffer.access, pages <= kWholeBytes ? 1u : 0u,
        buffer.address,     buffer.size};
    if (buffer.side == Side::device) put_text(segment.name, sizeof segment.name, buffer.name);
  }
  control.range_begin = first_;
  control.range_end = next_address_;
  return next_address_;
}

std::optional<Fault> CallMemory::overrun() const {
  const auto intact = [](const std::byte* begin, std::uint64_t count) {
    return count == 0 || (*begin == kPoison && std::memcmp(begin, begin + 1, count - 1) == 0);
  };
  for (std::size_t k = 0; k < buffers_.size(); ++k) {
    const Buffer& buffer = buffers_[k];
    const std::uint64_t before = buffer.address - buffer.pages_begin;
    const std::byte* const payload = bytes(k);
    if (!intact(payload - before, before)) {
      return Fault{FaultKind::out_of_bounds, buffer.name + ": written before its first element"};
    }
    if (!intact(payload + buffer.size, buffer.pages_end - buffer.address - buffer.size)) {
      return Fault{FaultKind::out_of_bounds, buffer.name + ": written past its last element"};
    }
  }
  return std::nullopt;
}

Fault CallMemory::explain(std::uint64_t address, Access how, std::uint64_t reserved_begin,
                          std::uint64_t reserved_end, const std::string& when) const {
  const bool write = how == Access::writable;
  const std::string verb = write ? "written" : "read";
  if (address >= reserved_begin && address < first_) {
    return {FaultKind::stale_memory,
            "memory of an earlier call was " + verb + " " + when +
                " (a pointer that was kept, or an address computed wrongly)"};
  }
  if (address < first_ || address >= reserved_end) {
    return {FaultKind::crash, "segmentation fault at " +
                                  (address == 0 ? std::string("the null pointer") : hex(address)) +
                                  " " + when};
  }
  const Buffer* nearest = nullptr;
  std::uint64_t nearest_distance = UINT64_MAX;
  for (const Buffer& buffer : buffers_) {
    const std::uint64_t distance = address < buffer.pages_begin  ? buffer.pages_begin - address
                                   : address >= buffer.pages_end ? address - buffer.pages_end + 1
                                                                 : 0;
    if (distance >= nearest_distance) continue;
    nearest = &buffer;
    nearest_distance = distance;
  }
  if (nearest == nullptr) return {FaultKind::out_of_bounds, "no buffer was " + verb + " " + when};
  if (nearest_distance == 0) {
    return {FaultKind::input_written,
            nearest->name + " was written " + when + ", at byte " +
                std::to_string(static_cast<std::int64_t>(address - nearest->address))};
  }
  const bool before = address < nearest->pages_begin;
  const std::uint64_t bytes =
      before ? nearest->address - address : address - (nearest->address + nearest->size) + 1;
  return {FaultKind::out_of_bounds,
          nearest->name + ": " + verb + " " + std::to_string(bytes) + " bytes " +
              (before ? "before its first element " : "past its last element ") + when};
}

}  // namespace attest::certify::worker
