// Checks of accesses to shared memory, by a shadow of what has been done to it.
#include <algorithm>
#include <bit>

#include "gpu/simt/memory/shared_memory.hpp"

namespace attest::simt {
namespace {

bool may_write(SharedMemory::Access access) { return access != SharedMemory::Access::read; }

bool is_atomic(SharedMemory::Access access) {
  return access == SharedMemory::Access::atomic || access == SharedMemory::Access::exchange;
}

}  // namespace

void SharedMemory::Shadow::clear() {
  state = 0;
  async_readers = 0;
  write_time = changed = 0;
  writes.clear();
  atomics.clear();
  reads.clear();
}

void SharedMemory::take_apart(std::size_t level, std::size_t part) {
  Parts &whole = parts_[level], &smaller = parts_[level + 1];
  const std::size_t count = std::size_t{1} << (whole.shift - smaller.shift);
  const std::size_t all = parts_[0].shadows.size() << (parts_[0].shift - smaller.shift);
  if (smaller.shadows.size() < all) smaller.shadows.resize(all);
  smaller.apart.resize(smaller.shadows.size());
  whole.apart[part] = 1;
  for (std::size_t k = part * count; k < (part + 1) * count; ++k) {
    smaller.shadows[k] = whole.shadows[part];
    smaller.apart[k] = 0;
  }
}

template <class Function>
void SharedMemory::for_each_shadow(std::size_t offset, std::size_t bytes, Function&& function) {
  const std::size_t end = offset + bytes;
  for (std::size_t level = 0; offset < end;) {
    Parts& parts = parts_[level];
    const std::size_t part = offset >> parts.shift, size = std::size_t{1} << parts.shift;
    const bool is_whole = offset % size == 0 && end - offset >= size;
    if (parts.apart[part] == 0 && !is_whole) take_apart(level, part);
    if (parts.apart[part] != 0) {
      ++level;
      continue;
    }
    function(parts.shadows[part]);
    offset += size;
    level = 0;
  }
}

template <class Function>
void SharedMemory::for_each_shadow_at(const void* pointer, std::size_t bytes, Function&& function) {
  const auto* const first = static_cast<const std::byte*>(pointer);
  if (checks_ == SharedChecks::off) return;
  const Variable* const variable = holder(first, bytes);
  if (variable == nullptr) return;
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
  if (shadow.is(Shadow::kBarrier)) return Finding{Fault::mbarrier, ", which is an mbarrier"};
  if (shadow.is(Shadow::kCopying)) {
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
  if (!shadow.is(Shadow::kWritten) && (access == Access::read || access == Access::atomic)) {
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
  Accesses* beside = is_atomic(access) ? &shadow.atomics : nullptr;
  // Later accesses must come after both writes of one value.
  if (access == Access::rewrite && !shadow.writes.ordered(lane, order_)) beside = &shadow.writes;
  if (beside == nullptr) return note_write(shadow, lane);
  note_change(shadow, lane);
  beside->add(lane, order_);
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
  const auto offset = variable->offset + static_cast<std::size_t>(first - variable->begin);
  const bool is_aligned = std::has_single_bit(bytes) && offset % bytes == 0;
  if (is_aligned && note_plain(whole(offset, bytes), access, lane)) return std::nullopt;
  std::optional<Finding> finding;
  for_each_shadow(offset, bytes, [&](Shadow& shadow) {
    if (note_plain(&shadow, access, lane)) return;
    if (!finding) finding = conflict(shadow, access, lane);
    if (!shadow.is(Shadow::kCopying)) note(shadow, access, lane);
  });
  if (finding) return found(std::move(*finding));
  return std::nullopt;
}

std::optional<Finding> SharedMemory::begin_copy(const void* pointer, std::size_t bytes,
                                                std::uint32_t lane, Copier copier) {
  std::optional<Finding> finding = check(pointer, bytes, Access::write, lane);
  for_each_shadow_at(pointer, bytes, [copier](Shadow& shadow) {
    shadow.set(Shadow::kCopying, true);
    shadow.copier = copier;
  });
  return finding;
}

void SharedMemory::end_copy(const void* pointer, std::size_t bytes, std::uint32_t lane) {
  const auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(pointer) - bytes_);
  if (is_checked() && is_plain_place(offset, bytes)) {
    if (Shadow* const shadow = whole(offset, bytes); shadow != nullptr) {
      shadow->set(Shadow::kCopying, false);
      note_write(*shadow, lane);
      shadow->write_time = 0;
      return;
    }
  }
  for_each_shadow_at(pointer, bytes, [&](Shadow& shadow) {
    shadow.set(Shadow::kCopying, false);
    note_write(shadow, lane);
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
  // A barrier of the block orders all lanes after the write, among them the last that has fenced.
  const bool is_plain = shadow.state == Shadow::kWritten && shadow.changed != order_.block_time();
  if (is_plain && shadow.write_time < fences_) return std::nullopt;
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
    shadow.set(Shadow::kBarrier, is_barrier);
    shadow.set(Shadow::kWritten, false);
  });
}

}  // namespace attest::simt
