#include "gpu/simt/access_order.hpp"

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
  warps_.assign(warps, Warp{});
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
}

std::uint32_t AccessOrder::unordered(std::uint32_t lane, std::uint32_t lanes,
                                     std::uint32_t warp_time) const {
  const Warp& warp = warps_[lane / kWarpLanes];
  lanes &= ~bit(lane);
  if (warp_time == warp.time) return lanes;  // no barrier since
  if (warp_time <= warp.whole_time) return 0;
  const Times& seen = warp.seen[lane % kWarpLanes];
  for (std::uint32_t left = lanes; left != 0; left &= left - 1) {
    const auto other = static_cast<std::uint32_t>(std::countr_zero(left));
    if (seen[other] >= warp_time) lanes &= ~bit(other);
  }
  return lanes;
}

void Accesses::add(std::uint32_t lane, const AccessOrder& order) {
  const std::uint32_t warp = lane / AccessOrder::kWarpLanes, time = order.warp_time(warp);
  if (block_time_ != order.block_time()) {
    block_time_ = order.block_time();
    warp_ = static_cast<std::uint16_t>(warp);
    elsewhere_ = kNone;
    earlier_.clear();
  } else if (warp_ != warp) {
    elsewhere_ =
        static_cast<std::uint16_t>(lane);  // nothing in this block time is after both warps
    return;
  } else if (latest_.time == time) {
    latest_.lanes |= bit(lane);
    return;
  } else {
    // What comes after this access comes after those before it, too.
    earlier_.push_back(latest_);
    for (AtTime& each : earlier_) each.lanes = order.unordered(lane, each.lanes, each.time);
    std::erase_if(earlier_, [](const AtTime& each) { return each.lanes == 0; });
  }
  latest_ = {time, bit(lane)};
}

std::optional<std::uint32_t> Accesses::unordered_now(std::uint32_t lane,
                                                     const AccessOrder& order) const {
  if (warp_ != lane / AccessOrder::kWarpLanes) return first(warp_, latest_.lanes);
  if (elsewhere_ != kNone) return elsewhere_;
  std::uint32_t lanes = order.unordered(lane, latest_.lanes, latest_.time);
  for (const AtTime& each : earlier_) lanes |= order.unordered(lane, each.lanes, each.time);
  if (lanes == 0) return std::nullopt;
  return first(warp_, lanes);
}

}  // namespace attest::simt
