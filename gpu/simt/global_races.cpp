#include "gpu/simt/global_races.hpp"

#include <algorithm>
#include <utility>

namespace attest::simt {

GlobalRaces::GlobalRaces(const GlobalMemory& memory) {
  for (const GlobalRange& range : memory.ranges()) {
    if (!range.writable || range.bytes == 0) continue;
    Region region{range.data, range.data + range.bytes, range.element_bytes};
    const auto apart = std::partition(regions_.begin(), regions_.end(), [&](const Region& known) {
      return known.end <= region.begin || region.end <= known.begin;
    });
    for (auto known = apart; known != regions_.end(); ++known) {
      region.begin = std::min(region.begin, known->begin);
      region.end = std::max(region.end, known->end);
      region.element_bytes = std::min(region.element_bytes, known->element_bytes);
    }
    regions_.erase(apart, regions_.end());
    regions_.push_back(std::move(region));
  }
  for (Region& region : regions_) {
    const auto bytes = static_cast<std::size_t>(region.end - region.begin);
    region.elements.resize((bytes + region.element_bytes - 1) / region.element_bytes);
  }
}

void GlobalRaces::Uses::add(const Accessor& accessor) {
  if (!latest_ || latest_->block != accessor.block) {
    other_ = latest_;
    in_latest_.clear();
  }
  latest_ = Known{accessor.block, accessor.lane};
  in_latest_.add(accessor.lane, *accessor.order);
}

std::optional<GlobalRaces::Known> GlobalRaces::Uses::unordered(const Accessor& accessor) const {
  if (!latest_) return std::nullopt;
  if (latest_->block != accessor.block) return latest_;
  if (other_ && other_->block != accessor.block) return other_;
  const auto lane = in_latest_.unordered(accessor.lane, *accessor.order);
  if (!lane) return std::nullopt;
  return Known{accessor.block, *lane};
}

std::optional<std::string> GlobalRaces::conflict(const Element& element, GlobalUse use,
                                                 const Accessor& accessor) {
  const auto with = [&](const Uses& uses, const char* verb) -> std::optional<std::string> {
    const auto known = uses.unordered(accessor);
    if (!known) return std::nullopt;
    std::string who = ", which lane " + std::to_string(known->lane);
    if (known->block != accessor.block) {
      who += " of block " + std::to_string(known->block.x) + "," + std::to_string(known->block.y) +
             "," + std::to_string(known->block.z);
    }
    return who + verb + "; nothing orders the two";
  };
  auto found = with(element.writes, " wrote");
  if (!found && use != GlobalUse::add) found = with(element.additions, " added to");
  if (!found && use != GlobalUse::read) found = with(element.reads, " read");
  return found;
}

void GlobalRaces::add(Element& element, GlobalUse use, const Accessor& accessor) {
  switch (use) {
    case GlobalUse::read:
      element.reads.add(accessor);
      return;
    case GlobalUse::add:
      element.additions.add(accessor);
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
  const auto* const byte = static_cast<const std::byte*>(pointer);
  const auto region = std::find_if(regions_.begin(), regions_.end(), [byte](const Region& each) {
    return byte >= each.begin && byte < each.end;
  });
  if (region == regions_.end()) return std::nullopt;
  const auto offset = static_cast<std::size_t>(byte - region->begin);
  // A constant tensor may reach beyond the region that it overlaps.
  const std::size_t last =
      std::min((offset + bytes - 1) / region->element_bytes, region->elements.size() - 1);
  std::optional<std::string> found;
  for (std::size_t k = offset / region->element_bytes; k <= last; ++k) {
    const std::lock_guard lock(locks_[k % kLocks]);
    Element& element = region->elements[k];
    if (!found) found = conflict(element, use, accessor);
    add(element, use, accessor);
  }
  return found;
}

std::optional<Finding> GlobalRaces::check(const GlobalRange& range, const void* pointer,
                                          std::size_t bytes, GlobalUse use,
                                          const Accessor& accessor) {
  const auto found = note(pointer, bytes, use, accessor);
  if (!found) return std::nullopt;
  const auto offset = static_cast<const std::byte*>(pointer) - range.data;
  return Finding{Fault::race, "lane " + std::to_string(accessor.lane) +
                                  (use == GlobalUse::read    ? " reads "
                                   : use == GlobalUse::write ? " writes "
                                                             : " adds to ") +
                                  std::to_string(bytes) + " bytes at byte " +
                                  std::to_string(offset) + " of '" + range.name + "'" + *found};
}

}  // namespace attest::simt
