#include "gpu/simt/memory/global_races.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

namespace attest::simt {

GlobalRaces::GlobalRaces(const GlobalMemory& memory, const LateReads& late_reads) {
  for (const auto& [begin, each] : late_reads) {
    LateRead* const last = known_late_.empty() ? nullptr : &known_late_.back();
    if (last == nullptr || begin >= last->begin + last->bytes) {
      known_late_.push_back(each);
      continue;
    }
    const std::byte* const end = std::max(last->begin + last->bytes, begin + each.bytes);
    last->bytes = static_cast<std::size_t>(end - last->begin);
    if (last->writer != each.writer) last->writer = {};
  }
  for (const GlobalRange& range : memory.ranges()) {
    if (!range.writable || range.bytes == 0) continue;
    Region region{range.data, range.data + range.bytes};
    const auto apart = std::partition(regions_.begin(), regions_.end(), [&](const Region& known) {
      return known.end <= region.begin || region.end <= known.begin;
    });
    for (auto known = apart; known != regions_.end(); ++known) {
      region.begin = std::min(region.begin, known->begin);
      region.end = std::max(region.end, known->end);
    }
    regions_.erase(apart, regions_.end());
    regions_.push_back(std::move(region));
  }
  for (Region& region : regions_) {
    region.chunks = std::vector<Chunk>(region.row_of(region.end - 1) / kChunkRows + 1);
  }
}

std::optional<GlobalRaces::Known> GlobalRaces::Uses::unordered(
    const Accessor& accessor, const BlockOrder& blocks, BlockOrder::Access::Kind kind) const {
  if (!any()) return std::nullopt;
  const auto is_unordered = [&](const Known& known) {
    if (!known.is_other_than(accessor.block)) return false;
    if (accessor.seen == nullptr || accessor.seen->empty() || known.time == kLate) return true;
    return !blocks.is_before({kind, known.block, known.lane, known.time},
                             {accessor.block, accessor.lane, accessor.order, accessor.fences},
                             *accessor.seen);
  };
  if (is_unordered(latest_)) return latest_;
  if (is_unordered(other_)) return other_;
  if (latest_.block != accessor.block) return std::nullopt;
  const auto lane = in_latest_.unordered(accessor.lane, *accessor.order);
  if (!lane) return std::nullopt;
  return Known{accessor.block, static_cast<std::uint16_t>(*lane)};
}

std::optional<GlobalRaces::Conflict> GlobalRaces::conflict(const Element& element, GlobalUse use,
                                                           const Accessor& accessor) const {
  const bool reads = use == GlobalUse::read;
  using Kind = BlockOrder::Access::Kind;
  const auto written = element.writes.unordered(accessor, blocks_, Kind::write);
  if (written) return Conflict{*written, " wrote", reads};
  if (reads || use == GlobalUse::write) {
    const auto added = element.additions.unordered(accessor, blocks_, Kind::operation);
    if (added) return Conflict{*added, " updated", reads};
  }
  if (!writes(use)) return std::nullopt;
  const auto read = element.reads.unordered(accessor, blocks_, Kind::read);
  return read ? std::optional(Conflict{*read, " read", true}) : std::nullopt;
}

std::optional<std::string> GlobalRaces::judge(const Conflict& conflict, const std::byte* begin,
                                              std::size_t bytes, GlobalUse use,
                                              const Accessor& accessor) {
  if (conflict.is_of_read) {
    if (known_late(begin, bytes) != nullptr) return std::nullopt;
    const Known self = accessor.known();
    const std::lock_guard lock(late_lock_);
    const Known writer = use == GlobalUse::read ? conflict.with : self;
    LateRead& late = found_late_.try_emplace(begin, LateRead{begin, bytes, writer}).first->second;
    late.bytes = std::max(late.bytes, bytes);
    if (late.writer != writer) late.writer = {};
  }
  const Index3 block = conflict.with.block;
  std::string who = ", which lane " + std::to_string(conflict.with.lane);
  if (block != accessor.block) {
    who += " of block " + std::to_string(block.x) + "," + std::to_string(block.y) + "," +
           std::to_string(block.z);
  }
  return who + conflict.verb + "; nothing orders the two";
}

const GlobalRaces::LateRead* GlobalRaces::known_late(const std::byte* begin,
                                                     std::size_t bytes) const {
  const auto after =
      std::lower_bound(known_late_.begin(), known_late_.end(), begin + bytes,
                       [](const LateRead& each, const std::byte* end) { return each.begin < end; });
  if (after == known_late_.begin()) return nullptr;
  const LateRead& last = *std::prev(after);
  return begin < last.begin + last.bytes ? &last : nullptr;
}

bool GlobalRaces::is_late(const void* pointer, std::size_t bytes, const Accessor& accessor) const {
  const auto* begin = static_cast<const std::byte*>(pointer);
  for (const std::byte* end = begin + bytes; begin < end;) {  // the last of them first
    const LateRead* const late = known_late(begin, static_cast<std::size_t>(end - begin));
    if (late == nullptr) return false;
    if (late->writer != accessor.known()) return true;
    end = late->begin;
  }
  return false;
}

void GlobalRaces::add(Element& element, GlobalUse use, const Accessor& accessor) {
  switch (use) {
    case GlobalUse::read:
      element.reads.add(accessor);
      return;
    case GlobalUse::add:
    case GlobalUse::strong_write:
      element.additions.add(accessor);
      return;
    case GlobalUse::strong_read:
      return;
    case GlobalUse::write:
      break;
  }
  // Accesses after this write come after all that the write came after.
  element.reads.clear();
  element.additions.clear();
  element.writes.clear();
  element.writes.add(accessor);
}

std::optional<std::string> GlobalRaces::note(const void* pointer, std::size_t bytes, GlobalUse use,
                                             const Accessor& accessor) {
  const auto* byte = static_cast<const std::byte*>(pointer);
  Region* const region = region_of(byte);
  if (region == nullptr) return std::nullopt;
  std::optional<std::string> found;
  std::unique_lock<std::mutex> lock;
  // A constant tensor may reach beyond the region that it overlaps.
  const std::byte* const end = std::min(byte + bytes, region->end);
  while (byte < end) {
    const std::size_t number = region->row_of(byte);
    const Held held = hold(*region, number, lock);
    const std::size_t first = reinterpret_cast<std::uintptr_t>(byte) % kRowBytes;
    const std::size_t count = std::min(kRowBytes - first, static_cast<std::size_t>(end - byte));
    const std::size_t both = first | count;
    held.take_apart(both & (~both + 1));  // the largest parts that are accessed as a whole
    if (writes(use)) keep(*region, number, region->chunks[number / kChunkRows]);
    const std::size_t size = held.part_bytes;
    for (std::size_t k = first / size; k * size < first + count; ++k) {
      const auto with = conflict(held.row.parts[k], use, accessor);
      const std::byte* const part = byte - first + k * size;
      if (auto text = with ? judge(*with, part, size, use, accessor) : std::nullopt; !found) {
        found = std::move(text);
      }
      add(held.row.parts[k], use, accessor);
    }
    byte += count;
  }
  return found;
}

std::uint32_t GlobalRaces::note_reads(const std::uint64_t* addresses, std::uint32_t lanes,
                                      std::size_t bytes, const Accessor& first) {
  if (knows_late_reads()) return 0;
  std::uint32_t noted = 0;
  Region* region = nullptr;
  std::unique_lock<std::mutex> lock;
  for (; lanes != 0; lanes &= lanes - 1) {
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(lanes));
    // NOLINTNEXTLINE(performance-no-int-to-ptr): global addresses are pointers of the host
    const auto* const byte = reinterpret_cast<const std::byte*>(addresses[lane]);
    if (region == nullptr) region = region_of(byte);
    if (region == nullptr || byte < region->begin || byte + bytes > region->end) continue;
    const auto [row, part_bytes] = hold(*region, region->row_of(byte), lock);
    Accessor accessor = first;
    accessor.lane += lane;
    if (!row.parts && bytes == kRowBytes) {
      row.reads.add(accessor);
      noted |= std::uint32_t{1} << lane;
    }
    if (!row.parts || bytes < part_bytes) continue;
    Element* const part = &row.parts[addresses[lane] % kRowBytes / part_bytes];
    Element* const end = part + bytes / part_bytes;
    if (std::any_of(part, end, [](const Element& each) {
          return each.writes.any() || each.additions.any();
        })) {
      continue;
    }
    for (Element* each = part; each != end; ++each) each->reads.add(accessor);
    noted |= std::uint32_t{1} << lane;
  }
  return noted;
}

std::optional<Finding> GlobalRaces::check(const GlobalRange& range, const void* pointer,
                                          std::size_t bytes, GlobalUse use,
                                          const Accessor& accessor) {
  const auto found = note(pointer, bytes, use, accessor);
  if (!found) return std::nullopt;
  const auto offset = static_cast<const std::byte*>(pointer) - range.data;
  return Finding{Fault::race, "lane " + std::to_string(accessor.lane) +
                                  (use == GlobalUse::add ? " adds to "
                                   : writes(use)         ? " writes "
                                                         : " reads ") +
                                  std::to_string(bytes) + " bytes at byte " +
                                  std::to_string(offset) + " of '" + range.name + "'" + *found};
}

}  // namespace attest::simt
