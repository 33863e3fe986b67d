#include "gpu/simt/memory/access_order.hpp"

#include <algorithm>
#include <bit>

namespace attest::simt {
namespace {

std::uint32_t bit(std::uint32_t lane) { return std::uint32_t{1} << lane % AccessOrder::kWarpLanes; }

std::uint32_t first(std::uint32_t warp, std::uint32_t lanes) {
  return warp * AccessOrder::kWarpLanes + static_cast<std::uint32_t>(std::countr_zero(lanes));
}

}  // namespace

void AccessOrder::begin(std::uint32_t warps) {
  block_time_ = 1;
  kernel_lanes_ = warps * kWarpLanes;
  warps_.assign(warps + 1, Warp{});
  elsewhere_.clear();
}

void AccessOrder::begin_hand_overs() {
  const std::size_t lanes = warps_.size() * kWarpLanes;
  elsewhere_.resize(lanes * lanes);
}

void AccessOrder::release(std::uint32_t lane, Clock& clock) {
  const std::uint32_t warp = lane / kWarpLanes, first_lane = warp * kWarpLanes;
  const std::uint32_t* const seen = seen_elsewhere(lane);
  clock.resize(warps_.size() * kWarpLanes);
  for (std::size_t k = 0; k < clock.size(); ++k) clock[k] = std::max(clock[k], seen[k]);
  const Times& own = warps_[warp].seen[lane % kWarpLanes];
  for (std::size_t k = 0; k < kWarpLanes; ++k) {
    clock[first_lane + k] = std::max(clock[first_lane + k], own[k]);
  }
  clock[lane] = warps_[warp].time++;  // what the lane does next is later
}

void AccessOrder::acquire(std::uint32_t lane, const Clock& clock) {
  const std::uint32_t warp = lane / kWarpLanes, first_lane = warp * kWarpLanes;
  std::uint32_t* const seen = seen_elsewhere(lane);
  for (std::size_t k = 0; k < clock.size(); ++k) seen[k] = std::max(seen[k], clock[k]);
  Times& own = warps_[warp].seen[lane % kWarpLanes];
  for (std::size_t k = 0; k < kWarpLanes && !clock.empty(); ++k) {
    own[k] = std::max(own[k], clock[first_lane + k]);
  }
}

void AccessOrder::warp_barrier(std::uint32_t warp_number, std::uint32_t lanes) {
  Warp& warp = warps_[warp_number];
  Times joined{};
  for (std::uint32_t left = lanes; left != 0; left &= left - 1) {
    const Times& seen = warp.seen[static_cast<std::size_t>(std::countr_zero(left))];
    for (std::size_t k = 0; k < kWarpLanes; ++k) joined[k] = std::max(joined[k], seen[k]);
  }
  for (std::size_t k = 0; k < kWarpLanes; ++k) {
    if ((lanes >> k & 1U) != 0) joined[k] = warp.time;
  }
  for (std::uint32_t left = lanes; left != 0; left &= left - 1) {
    warp.seen[static_cast<std::size_t>(std::countr_zero(left))] = joined;
  }
  if (lanes == ~std::uint32_t{0}) warp.whole_time = warp.time;
  ++warp.time;
  if (!has_hand_overs()) return;
  Clock others(warps_.size() * kWarpLanes);
  const auto each = [&](auto&& function) {
    for (std::uint32_t left = lanes; left != 0; left &= left - 1) {
      std::uint32_t* const seen = seen_elsewhere(first(warp_number, left));
      for (std::size_t k = 0; k < others.size(); ++k) function(seen[k], others[k]);
    }
  };
  each([](std::uint32_t seen, std::uint32_t& other) { other = std::max(other, seen); });
  each([](std::uint32_t& seen, std::uint32_t other) { seen = other; });
}

std::uint32_t AccessOrder::unordered(std::uint32_t lane, std::uint32_t warp_number,
                                     std::uint32_t lanes, std::uint32_t warp_time) const {
  const bool own = warp_number == lane / kWarpLanes;
  if (!own && !has_hand_overs()) return lanes;
  const Warp& warp = warps_[warp_number];
  if (own) {
    lanes &= ~bit(lane);
    if (warp_time <= warp.whole_time) return 0;
  }
  if (warp_time == warp.time) return lanes;  // no barrier since
  const std::size_t first_lane = std::size_t{warp_number} * kWarpLanes;
  const std::uint32_t* const seen =
      own ? warp.seen[lane % kWarpLanes].data()
          : elsewhere_.data() + lane * warps_.size() * kWarpLanes + first_lane;
  for (std::uint32_t left = lanes; left != 0; left &= left - 1) {
    const auto other = static_cast<std::uint32_t>(std::countr_zero(left));
    if (seen[other] >= warp_time) lanes &= ~bit(other);
  }
  return lanes;
}

void Accesses::add_later(std::uint32_t lane, const AccessOrder& order) {
  const std::uint32_t warp = lane / AccessOrder::kWarpLanes, time = order.warp_time(warp);
  if (!earlier_) earlier_ = std::make_unique<Earlier>();
  const auto now = std::find_if(earlier_->begin(), earlier_->end(), [&](const AtTime& each) {
    return each.warp == warp && each.time == time;
  });
  if (now != earlier_->end()) {
    now->lanes |= bit(lane);
    return;
  }
  // Accesses after this one come after those before this one, too.
  earlier_->push_back(latest_);
  for (AtTime& each : *earlier_) {
    each.lanes = order.unordered(lane, each.warp, each.lanes, each.time);
  }
  std::erase_if(*earlier_, [](const AtTime& each) { return each.lanes == 0; });
  latest_ = {time, bit(lane), static_cast<std::uint16_t>(warp), latest_.elsewhere};
}

std::optional<std::uint32_t> Accesses::unordered_now(std::uint32_t lane,
                                                     const AccessOrder& order) const {
  if (latest_.elsewhere != kNone) {
    return latest_.warp == lane / AccessOrder::kWarpLanes ? latest_.elsewhere
                                                          : first(latest_.warp, latest_.lanes);
  }
  const auto of = [&](const AtTime& each) {
    return order.unordered(lane, each.warp, each.lanes, each.time);
  };
  if (const std::uint32_t lanes = of(latest_); lanes != 0) return first(latest_.warp, lanes);
  if (!earlier_) return std::nullopt;
  for (const AtTime& each : *earlier_) {
    if (const std::uint32_t lanes = of(each); lanes != 0) return first(each.warp, lanes);
  }
  return std::nullopt;
}

}  // namespace attest::simt
