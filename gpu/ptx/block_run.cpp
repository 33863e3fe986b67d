#include "gpu/ptx/block_run.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

#include "core/rng.hpp"

namespace attest::ptx {

using simt::Fault;

void BlockRun::begin(const Launch& launch, simt::Index3 index, const simt::Emulation& emulation) {
  launch_ = &launch;
  index_ = index;
  emulation_ = emulation;
  const simt::Index3 size = launch.shape.block;
  lanes_ = size.x * size.y * size.z;
  const auto warps = static_cast<std::uint32_t>((lanes_ + kWarpLanes - 1) / kWarpLanes);
  shared_.begin(place(0, 0).shared_bytes, emulation.shared_bytes_limit, emulation.shared_checks,
                warps);
  barriers_.begin(*this);
  fences_.begin();
  seen_.clear();
  local_.assign(warps * kWarpLanes * program().local_bytes, std::byte{0xFF});
  copies_.resize(warps * kWarpLanes);
  for (simt::AsyncCopies& each : copies_) each.clear();
  traffic_.assign(launch.global.ranges().size(), {});
  reported_.clear();
  instructions_ = 0;
  random_ = mix(emulation.seed, mix(index.x, mix(index.y, index.z)));
  given_up_ = false;
  late_lanes_ = 0;
  warps_.resize(warps);
  for (std::uint32_t k = 0; k < warps; ++k) {
    const std::uint32_t left = lanes_ - k * static_cast<std::uint32_t>(kWarpLanes);
    warps_[k].begin(*this, k, left >= kWarpLanes ? kAllLanes : (1U << left) - 1);
  }
  cluster_barrier_.begin(*this);
  warpgroups_.begin(*this);
  mbarriers_.begin();
  tensor_copies_.begin(warps * static_cast<std::uint32_t>(kWarpLanes));
  waiting_.assign(warps, {});
}

LanePlace BlockRun::place(std::uint32_t warp, std::uint32_t lane) const {
  const simt::Index3 size = launch_->shape.block;
  const std::uint32_t number = warp * static_cast<std::uint32_t>(kWarpLanes) + lane;
  const auto dynamic = static_cast<std::uint32_t>(launch_->shape.dynamic_shared_bytes);
  LanePlace place;
  place.grid = launch_->shape.grid;
  place.block_size = size;
  place.block = index_;
  place.thread = {number % size.x, number / size.x % size.y, number / size.x / size.y};
  place.lane = lane;
  place.warp = warp;
  place.warps = static_cast<std::uint32_t>((lanes_ + kWarpLanes - 1) / kWarpLanes);
  place.dynamic_shared_bytes = dynamic;
  place.shared_bytes = static_cast<std::uint32_t>(program().shared_bytes(dynamic));
  return place;
}

std::vector<std::size_t> BlockRun::order_of_warps() {
  std::vector<std::size_t> order(warps_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (emulation_.order == simt::Order::descending) std::reverse(order.begin(), order.end());
  if (emulation_.order == simt::Order::shuffled) {
    for (std::size_t k = order.size(); k > 1; --k) {
      random_ = mix(random_, k);
      std::swap(order[k - 1], order[random_ % k]);
    }
  }
  return order;
}

bool BlockRun::can_go_on() const {
  const auto has = [](Warp::State state) {
    return [state](const Warp& warp) { return warp.state() == state; };
  };
  return std::any_of(warps_.begin(), warps_.end(), has(Warp::State::running)) ||
         std::all_of(warps_.begin(), warps_.end(), has(Warp::State::ended));
}

void BlockRun::give_up_deadlocked() {
  if (warpgroups_.give_up_deadlocked() || cluster_barrier_.give_up_deadlocked()) return;
  const auto waits = std::find_if(waiting_.begin(), waiting_.end(),
                                  [](const Waiting& each) { return each.lanes > 0; });
  if (waits == waiting_.end()) return barriers_.give_up_deadlocked();
  give_up({Fault::deadlock, "warp " + std::to_string(waits - waiting_.begin()) +
                                " waits for an mbarrier" + mbarriers_.explain_deadlock(*this)},
          *waits->in);
}

void BlockRun::take_turns() {
  const auto has_ended = [](const Warp& warp) { return warp.state() == Warp::State::ended; };
  while (!given_up_ && !std::all_of(warps_.begin(), warps_.end(), has_ended)) {
    for (const std::size_t k : order_of_warps()) {
      if (!given_up_) warps_[k].run();
    }
    if (given_up_) return;
    barriers_.release_complete();
    cluster_barrier_.release_complete();
    while (!can_go_on() && tensor_copies_.arrive(*this)) {
    }
    if (!can_go_on()) give_up_deadlocked();
  }
  if (given_up_) return;
  tensor_copies_.end(*this);
  warpgroups_.end();
}

void BlockRun::run(const Launch& launch, simt::Index3 index, const simt::Emulation& emulation,
                   simt::GlobalRaces* races, simt::LaunchReport& report) {
  races_ = races;
  report_ = &report;
  begin(launch, index, emulation);
  try {
    take_turns();
  } catch (const Stopped&) {
    // The diagnosis has been made.
  }
  report.blocks_given_up += given_up_ ? 1 : 0;
  report.instructions += instructions_;
  report.shared_bytes = std::max(report.shared_bytes, shared_.used_bytes());
  report.add_traffic(traffic_);
}

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

void BlockRun::report(const simt::Finding& finding, const Instruction& in) {
  const std::pair key{finding.fault, in.line};
  if (report_->diagnoses.size() >= emulation_.most_diagnoses ||
      std::find(reported_.begin(), reported_.end(), key) != reported_.end()) {
    return;
  }
  reported_.push_back(key);
  report_->diagnoses.push_back({finding.fault,
                                finding.text + " (PTX line " + std::to_string(in.line) + ")",
                                in.source, index_});
}

void BlockRun::give_up(const simt::Finding& finding, const Instruction& in) {
  report(finding, in);
  given_up_ = true;
  for (Warp& warp : warps_) warp.give_up();
}

void BlockRun::give_up_endless(const Instruction& in) {
  give_up({Fault::deadlock, "the block has executed " +
                                std::to_string(launch_->choices.most_instructions) +
                                " instructions of its warps and does not end"},
          in);
}

}  // namespace attest::ptx
