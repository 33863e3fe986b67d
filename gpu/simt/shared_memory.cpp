#include "gpu/simt/shared_memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "core/error.hpp"

namespace attest::simt {
namespace {

constexpr int kNaNByte = 0xFF;  // in every floating-point type
constexpr std::size_t kWord = 4;

std::size_t rounded_up(std::size_t value, std::size_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

bool may_write(SharedMemory::Access access) { return access != SharedMemory::Access::read; }

bool is_atomic(SharedMemory::Access access) {
  return access == SharedMemory::Access::atomic || access == SharedMemory::Access::exchange;
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
  place(nullptr, "dynamic shared memory", bytes_,
        std::min(static_cast<std::size_t>(dynamic_bytes), kMostBytes), 0);
}

void SharedMemory::place(const void* tag, const char* name, std::byte* begin, std::size_t bytes,
                         std::size_t offset) {
  std::memset(begin, kNaNByte, bytes);
  used_ = offset + bytes;
  variables_.push_back({tag, name, begin, bytes, offset});
  if (checks_ == SharedChecks::off) return;
  const std::size_t end = rounded_up(used_, kWord) / kWord;
  if (words_.size() < end) words_.resize(end);
  apart_.resize(end);
  for (std::size_t word = offset / kWord; word < end; ++word) {
    apart_[word] = false;
    words_[word].clear();
  }
}

void SharedMemory::Shadow::clear() {
  written = copying = is_barrier = false;
  async_readers = 0;
  write_time = 0;
  writes.clear();
  atomics.clear();
  reads.clear();
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

// One shadow for a word as long as all accesses to it are to the whole word, as most are.
template <class Function>
void SharedMemory::for_each_shadow(std::size_t offset, std::size_t bytes, Function&& function) {
  for (const std::size_t end = offset + bytes; offset < end;) {
    const std::size_t word = offset / kWord;
    const bool whole = offset % kWord == 0 && end - offset >= kWord;
    if (whole && !apart_[word]) {
      function(words_[word]);
      offset += kWord;
      continue;
    }
    if (!apart_[word]) {
      apart_[word] = true;
      if (bytes_apart_.size() < words_.size() * kWord) bytes_apart_.resize(words_.size() * kWord);
      std::fill_n(bytes_apart_.begin() + static_cast<std::ptrdiff_t>(word * kWord), kWord,
                  words_[word]);
    }
    function(bytes_apart_[offset]);
    ++offset;
  }
}

template <class Function>
void SharedMemory::for_each_shadow_at(const void* pointer, std::size_t bytes, Function&& function) {
  const auto* const first = static_cast<const std::byte*>(pointer);
  const Variable* const variable = holder(first, bytes);
  if (checks_ == SharedChecks::off || variable == nullptr) return;
  for_each_shadow(variable->offset + static_cast<std::size_t>(first - variable->begin), bytes,
                  function);
}

std::string SharedMemory::who(std::uint32_t lane) const {
  return order_.is_engine(lane) ? "an asynchronous instruction" : "lane " + std::to_string(lane);
}

std::optional<Finding> SharedMemory::conflict(const Shadow& shadow, Access access,
                                              std::uint32_t lane) const {
  const auto race = [&](const Accesses& others, const char* what) {
    return Finding{Fault::race, ", which " + who(*others.unordered(lane, order_)) + what +
                                    "; nothing orders the two"};
  };
  if (shadow.is_barrier) return Finding{Fault::mbarrier, ", which is an mbarrier"};
  if (shadow.copying) {
    return Finding{
        Fault::async_pending,
        shadow.copier == Copier::tensor
            ? ", to which a tensor copy of " + who(shadow.writer) + " is under way"
            : ", to which " + who(shadow.writer) + " copies asynchronously and has not yet waited"};
  }
  if (shadow.async_readers > 0 && may_write(access)) {
    return Finding{Fault::async_pending,
                   ", which an asynchronous instruction reads that has not ended"};
  }
  if (!shadow.written && (access == Access::read || access == Access::atomic)) {
    return Finding{Fault::uninitialised, ", which nothing has written"};
  }
  if (access != Access::rewrite && !shadow.writes.ordered(lane, order_)) {
    return race(shadow.writes, " wrote");
  }
  if (!is_atomic(access) && !shadow.atomics.ordered(lane, order_)) {
    return race(shadow.atomics, " changed atomically");
  }
  if (may_write(access) && !shadow.reads.ordered(lane, order_)) return race(shadow.reads, " read");
  return std::nullopt;
}

void SharedMemory::note(Shadow& shadow, Access access, std::uint32_t lane) {
  if (access == Access::read) {
    shadow.reads.add(lane, order_);
    return;
  }
  shadow.written = true;
  shadow.writer = lane;
  shadow.write_time = order_.is_engine(lane) ? 0 : fences_;
  if (is_atomic(access)) {
    shadow.atomics.add(lane, order_);
    return;
  }
  if (access == Access::rewrite && !shadow.writes.ordered(lane, order_)) {
    shadow.writes.add(lane, order_);  // later accesses must come after both
    return;
  }
  // Accesses after this write come after all that the write came after.
  shadow.writes.clear();
  shadow.atomics.clear();
  shadow.reads.clear();
  shadow.writes.add(lane, order_);
}

std::optional<Finding> SharedMemory::check(const void* pointer, std::size_t bytes, Access access,
                                           std::uint32_t lane) {
  const auto* const first = static_cast<const std::byte*>(pointer);
  const auto found = [&](Finding finding) {
    finding.text = "lane " + std::to_string(lane) + (may_write(access) ? " writes " : " reads ") +
                   describe(first, bytes) + finding.text;
    return finding;
  };
  const Variable* const variable = holder(first, bytes);
  if (variable == nullptr) return found({Fault::out_of_bounds, ""});
  if (checks_ == SharedChecks::off) return std::nullopt;
  std::optional<Finding> finding;
  const auto offset = variable->offset + static_cast<std::size_t>(first - variable->begin);
  for_each_shadow(offset, bytes, [&](Shadow& shadow) {
    if (!finding) finding = conflict(shadow, access, lane);
    if (!shadow.copying) note(shadow, access, lane);
  });
  if (finding) return found(std::move(*finding));
  return std::nullopt;
}

std::optional<Finding> SharedMemory::begin_copy(const void* pointer, std::size_t bytes,
                                                std::uint32_t lane, Copier copier) {
  std::optional<Finding> finding = check(pointer, bytes, Access::write, lane);
  for_each_shadow_at(pointer, bytes, [copier](Shadow& shadow) {
    shadow.copying = true;
    shadow.copier = copier;
  });
  return finding;
}

void SharedMemory::end_copy(const void* pointer, std::size_t bytes, std::uint32_t lane) {
  for_each_shadow_at(pointer, bytes, [&](Shadow& shadow) {
    shadow.copying = false;
    note(shadow, Access::write, lane);
    shadow.write_time = 0;
  });
}

// A lane that has seen the write has fenced since. Writes that are still unordered are races.
bool SharedMemory::is_visible_to_async(const Shadow& shadow) const {
  if (shadow.write_time == 0 || last_fence_[shadow.writer] > shadow.write_time) return true;
  for (std::uint32_t lane = 0; lane < last_fence_.size(); ++lane) {
    if (last_fence_[lane] > shadow.write_time && shadow.writes.ordered(lane, order_)) {
      return true;
    }
  }
  return false;
}

std::optional<Finding> SharedMemory::conflict(const Shadow& shadow, Readers readers) const {
  for (std::uint32_t set = 0; set < readers.sets; ++set) {
    std::optional<Finding> finding;
    for (std::uint32_t k = 0; k < readers.lanes; ++k) {
      finding = conflict(shadow, Access::read, readers.first + set * readers.lanes + k);
      if (!finding) break;
    }
    if (finding) return finding;
  }
  if (is_visible_to_async(shadow)) return std::nullopt;
  return Finding{Fault::missing_fence,
                 ", which " + who(shadow.writer) + " wrote without fence_proxy_async() after it"};
}

std::optional<Finding> SharedMemory::begin_async_read(const void* pointer, std::size_t bytes,
                                                      Readers readers) {
  std::optional<Finding> finding;
  for_each_shadow_at(pointer, bytes, [&](Shadow& shadow) {
    ++shadow.async_readers;
    if (!finding) finding = conflict(shadow, readers);
  });
  if (finding) finding->text = "reads " + describe(pointer, bytes) + finding->text;
  return finding;
}

void SharedMemory::end_async_read(const void* pointer, std::size_t bytes, std::uint32_t lane) {
  for_each_shadow_at(pointer, bytes, [&](Shadow& shadow) {
    --shadow.async_readers;
    note(shadow, Access::read, lane);
  });
}

void SharedMemory::fence_async(std::uint32_t lane) { last_fence_[lane] = ++fences_; }

void SharedMemory::set_barrier(const void* pointer, std::size_t bytes, bool is_barrier) {
  for_each_shadow_at(pointer, bytes, [is_barrier](Shadow& shadow) {
    shadow.is_barrier = is_barrier;
    shadow.written = false;
  });
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
