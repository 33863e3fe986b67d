#include "gpu/simt/memory/shared_memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "core/error.hpp"

namespace attest::simt {
namespace {

constexpr int kNaNByte = 0xFF;  // in every floating-point type

std::size_t rounded_up(std::size_t value, std::size_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

}  // namespace

SharedMemory::SharedMemory() {
  void* const mapped =
      mmap(nullptr, kMappedBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) throw InternalError("no memory for the shared memory of a block");
  mapped_ = static_cast<std::byte*>(mapped);
  bytes_ = mapped_ + kBefore;  // a multiple of any alignment that an instruction asks for
  open_pages(SharedChecks::off);
}

SharedMemory::~SharedMemory() { munmap(mapped_, kMappedBytes); }

// With checks, all of it: a miss is reported and must not end the program before.
void SharedMemory::open_pages(SharedChecks checks) {
  const int outside = checks == SharedChecks::on ? PROT_READ | PROT_WRITE : PROT_NONE;
  if (mprotect(mapped_, kMappedBytes, outside) != 0 ||
      mprotect(bytes_, kMostBytes, PROT_READ | PROT_WRITE) != 0) {
    throw InternalError("no mappings left for the shared memory of a block");
  }
  checks_ = checks;
}

void SharedMemory::begin(std::int64_t dynamic_bytes, std::int64_t limit_bytes, SharedChecks checks,
                         std::uint32_t warps) {
  if (checks != checks_) open_pages(checks);
  limit_ = std::min(static_cast<std::size_t>(limit_bytes), kMostBytes);
  used_ = static_bytes_ = 0;
  variables_.clear();
  order_.begin(warps);
  fences_ = 1;
  last_fence_.assign(std::size_t{warps} * AccessOrder::kWarpLanes, 0);
  dynamic_bytes_ = std::min(static_cast<std::size_t>(dynamic_bytes), kMostBytes);
  place(nullptr, "dynamic shared memory", bytes_, dynamic_bytes_, 0);
}

void SharedMemory::place(const void* tag, const char* name, std::byte* begin, std::size_t bytes,
                         std::size_t offset) {
  std::memset(begin, kNaNByte, bytes);
  used_ = offset + bytes;
  variables_.push_back({tag, name, begin, bytes, offset});
  if (checks_ == SharedChecks::off) return;
  const std::size_t end = rounded_up(used_, kRow) / kRow;
  Parts& rows = parts_[0];
  if (rows.shadows.size() < end) rows.shadows.resize(end);
  rows.apart.resize(rows.shadows.size());
  for (std::size_t row = offset / kRow; row < end; ++row) {
    rows.apart[row] = 0;
    rows.shadows[row].clear();
  }
}

void* SharedMemory::variable(const void* tag, const char* name, std::size_t bytes,
                             std::size_t alignment) {
  for (const Variable& known : variables_) {
    if (known.tag == tag) return known.begin;
  }
  constexpr std::size_t kLeastAlignment = 16;  // of the widest load of a lane
  const std::size_t offset = rounded_up(used_, std::max(alignment, kLeastAlignment));
  if (offset + bytes > limit_ || static_bytes_ + bytes > kMostStaticBytes) return nullptr;
  std::byte* begin = bytes_ + offset;
  if (checks_ == SharedChecks::on) {
    const Variable& last = variables_.back();
    const auto end = static_cast<std::size_t>(last.begin - bytes_) + last.bytes;
    begin = bytes_ + rounded_up(end + kRedZoneBytes, kRedZoneBytes);
    if (begin + bytes + kRedZoneBytes > mapped_ + kMappedBytes) return nullptr;
  }
  static_bytes_ += bytes;
  place(tag, name, begin, bytes, offset);
  return begin;
}

std::string SharedMemory::taken() const {
  return std::to_string(static_bytes_) + " of " + std::to_string(kMostStaticBytes) +
         " static ones are taken, " + std::to_string(used_) + " of " + std::to_string(limit_) +
         " in all";
}

const SharedMemory::Variable* SharedMemory::holder(const std::byte* pointer,
                                                   std::size_t bytes) const {
  for (const Variable& variable : variables_) {
    if (pointer >= variable.begin && pointer + bytes <= variable.begin + variable.bytes) {
      return &variable;
    }
  }
  return nullptr;
}

// By the variable that holds it, else by the nearest one.
std::string SharedMemory::describe(const void* place, std::size_t bytes) const {
  const auto* const pointer = static_cast<const std::byte*>(place);
  const auto distance = [pointer](const Variable& variable) {
    const std::byte* const end = variable.begin + variable.bytes;
    return pointer < variable.begin ? variable.begin - pointer : std::max(pointer - end, {});
  };
  const Variable& nearest = *std::min_element(
      variables_.begin(), variables_.end(),
      [&](const Variable& a, const Variable& b) { return distance(a) < distance(b); });
  std::string text = std::to_string(bytes) + " bytes at byte " +
                     std::to_string(pointer - nearest.begin) + " of '" + nearest.name + "'";
  if (holder(pointer, bytes) == nullptr) text += ", which has " + std::to_string(nearest.bytes);
  return text;
}

std::optional<std::uint32_t> SharedMemory::address(const void* pointer) const {
  const auto* const byte = static_cast<const std::byte*>(pointer);
  const Variable* const variable = holder(byte, 1);
  if (variable == nullptr) return std::nullopt;
  return static_cast<std::uint32_t>(variable->offset +
                                    static_cast<std::size_t>(byte - variable->begin));
}

std::byte* SharedMemory::at(std::uint32_t address, std::size_t bytes) const {
  for (const Variable& variable : variables_) {
    if (address >= variable.offset && address + bytes <= variable.offset + variable.bytes) {
      return variable.begin + (address - variable.offset);
    }
  }
  return nullptr;
}

}  // namespace attest::simt
