// Accesses of a block to global and shared memory: whether they are in order, and what they move.
#include <bit>

#include "gpu/ptx/execution/block_run.hpp"

namespace attest::ptx {

using simt::Fault;

// Buffers may lie on one another: a write goes to one that may be written.
int BlockRun::tensor_of(const void* pointer, std::size_t bytes, simt::GlobalUse use) const {
  const simt::GlobalMemory& global = launch_->global;
  const int nearest = global.find_nearest(pointer);
  if (!writes(use) || nearest < 0) return nearest;
  for (std::size_t k = static_cast<std::size_t>(nearest); k < global.ranges().size(); ++k) {
    const int tensor = static_cast<int>(k);
    if (global.ranges()[k].writable && global.has(tensor, pointer, bytes, 1)) return tensor;
  }
  return nearest;
}

bool BlockRun::touch_global(const Warp& warp, const Instruction& in, std::uint32_t lane,
                            const void* pointer, std::size_t bytes, simt::GlobalUse use) {
  return touch_global(number_of(warp, lane), in, pointer, bytes, bytes, use);
}

bool BlockRun::touch_global(std::uint32_t number, const Instruction& in, const void* pointer,
                            std::size_t bytes, std::size_t alignment, simt::GlobalUse use) {
  const simt::GlobalMemory& global = launch_->global;
  const int tensor = tensor_of(pointer, bytes, use);
  if (!global.has(tensor, pointer, bytes, alignment)) {
    report(global.fault(tensor, pointer, bytes, use, number), in);
    return false;
  }
  const simt::GlobalRange& range = global.ranges()[static_cast<std::size_t>(tensor)];
  if (writes(use) && !range.writable) {
    report({Fault::out_of_bounds, "lane " + std::to_string(number) + " writes to '" + range.name +
                                      "', which may only be read"},
           in);
    return false;
  }
  traffic_[static_cast<std::size_t>(tensor)].add(bytes, use);
  if (races_ != nullptr && races_->may_race(pointer, bytes)) {
    const simt::GlobalRaces::Accessor who = accessor(number);
    const bool is_posted = use == simt::GlobalUse::strong_write && in.of_device;
    if (use == simt::GlobalUse::add || is_posted) {
      if (in.is_release) fences_.fence(number, shared_.order());
      races_->blocks().release(pointer, {who.block, who.lane, who.order, who.fences});
    }
    const auto race = races_->check(range, pointer, bytes, use, who);
    if (race) report(*race, in);
    const bool is_late = use == simt::GlobalUse::read && races_->is_late(pointer, bytes, who);
    late_lanes_ |= std::uint32_t{is_late} << number % kWarpLanes;
  }
  return true;
}

std::uint32_t BlockRun::glance_global(const Warp& warp, std::uint32_t lanes,
                                      const Lanes<std::uint64_t>& addresses, std::size_t bytes) {
  const auto range_at = [this](std::size_t k) {
    const simt::GlobalRange& range = launch_->global.ranges()[k];
    const auto begin = reinterpret_cast<std::uint64_t>(range.data);
    return std::pair{begin, begin + static_cast<std::uint64_t>(range.bytes)};
  };
  const auto first = static_cast<std::size_t>(std::countr_zero(lanes));
  // NOLINTNEXTLINE(performance-no-int-to-ptr): global addresses are pointers of the host
  const int tensor = launch_->global.find_nearest(reinterpret_cast<void*>(addresses[first]));
  if (tensor < 0) return 0;
  const auto number = static_cast<std::size_t>(tensor);
  const auto [begin, end] = range_at(number);
  for (std::size_t k = 0; k < number; ++k) {  // what lies in two tensors counts for the first
    const auto [other_begin, other_end] = range_at(k);
    if (other_begin < end && begin < other_end) return 0;
  }
  std::uint32_t within = 0;
  for (std::size_t lane = 0; lane < kWarpLanes; ++lane) {
    const std::uint64_t address = addresses[lane];
    const bool is_within =
        (address & (bytes - 1)) == 0 && address - begin < end - begin && end - address >= bytes;
    within |= std::uint32_t{is_within} << lane;
  }
  within &= lanes;
  const std::size_t all = static_cast<std::size_t>(end - begin);
  if (races_ != nullptr && races_->may_race(launch_->global.ranges()[number].data, all)) {
    if (bytes > simt::AsyncCopies::kMostBytes) return 0;
    within = races_->note_reads(addresses.data(), within, bytes, accessor(number_of(warp, 0)));
  }
  const auto count = static_cast<std::size_t>(std::popcount(within));
  traffic_[number].add(count * bytes, simt::GlobalUse::read);
  return within;
}

void BlockRun::fence_device(const Warp& warp, std::uint32_t lane) {
  fences_.fence(number_of(warp, lane), shared_.order());
}

void BlockRun::note_operation(const Warp& warp, std::uint32_t lane, const void* place) {
  if (races_ == nullptr) return;
  races_->blocks().acquire(place, {index_, number_of(warp, lane), &shared_.order(), &fences_},
                           seen_);
}

bool BlockRun::is_aligned(const Warp& warp, const Instruction& in, std::uint32_t lane,
                          const void* pointer, std::size_t bytes) {
  if ((reinterpret_cast<std::uintptr_t>(pointer) & (bytes - 1)) == 0) return true;
  report(
      {Fault::misaligned, "lane " + std::to_string(number_of(warp, lane)) + " accesses " +
                              shared_.describe(pointer, bytes) + ", which is no multiple of that"},
      in);
  return false;
}

bool BlockRun::touch_shared(const Warp& warp, const Instruction& in, std::uint32_t lane,
                            const void* pointer, std::size_t bytes,
                            simt::SharedMemory::Access access) {
  if (!is_aligned(warp, in, lane, pointer, bytes)) return false;
  const auto found = shared_.check(pointer, bytes, access, number_of(warp, lane));
  if (found) report(*found, in);
  return !found || found->fault != Fault::out_of_bounds;
}

bool BlockRun::begin_copy(const Warp& warp, const Instruction& in, std::uint32_t lane,
                          const void* to, std::size_t bytes) {
  if (!is_aligned(warp, in, lane, to, bytes)) return false;
  const auto found = shared_.begin_copy(to, bytes, number_of(warp, lane));
  if (found) report(*found, in);
  return !found || found->fault != Fault::out_of_bounds;
}

}  // namespace attest::ptx
