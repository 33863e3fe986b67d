#include "gpu/ptx/execution/block_run.hpp"

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
