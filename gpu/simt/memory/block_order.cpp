#include "gpu/simt/memory/block_order.hpp"

#include <algorithm>

namespace attest::simt {

void BlockFences::fence(std::uint32_t lane, const AccessOrder& order) {
  if (block_time_ != order.block_time()) {
    if (any()) earlier_ = std::move(latest_);
    block_time_ = order.block_time();
    latest_ = {time(order), {}};
  }
  ++count_;
  latest_.of_lanes[lane] = time(order);
}

// Fences of other lanes come before it where a barrier of the block lies between.
BlockFences::Covered BlockFences::before(std::uint32_t lane, const AccessOrder& order) const {
  if (!any() || block_time_ != order.block_time()) return latest_;
  const auto own = latest_.of_lanes.find(lane);
  if (own == latest_.of_lanes.end()) return earlier_;
  Covered covered = earlier_;
  covered.before = latest_.before;
  covered.of_lanes[lane] = own->second;
  return covered;
}

bool BlockOrder::Operation::covers(const Access& access) const {
  if (block != access.block) return false;
  if (access.kind == Access::Kind::operation || access.time < covered.before) return true;
  const auto of_lane = covered.of_lanes.find(access.lane);
  return access.kind == Access::Kind::write && of_lane != covered.of_lanes.end() &&
         access.time < of_lane->second;
}

void BlockOrder::release(const void* place, const Accessor& accessor) {
  if (!accessor.fences->any()) return;
  Operation operation{accessor.block, accessor.fences->before(accessor.lane, *accessor.order)};
  const std::lock_guard lock(lock_);
  operations_[place].push_back(std::move(operation));
  any_ = true;
}

void BlockOrder::acquire(const void* place, const Accessor& accessor,
                         std::vector<Seen>& seen) const {
  if (!any_) return;
  const std::lock_guard lock(lock_);
  const auto there = operations_.find(place);
  if (there == operations_.end()) return;
  seen.push_back({place, there->second.size(), accessor.lane, accessor.order->block_time()});
}

bool BlockOrder::is_before(const Access& access, const Accessor& accessor,
                           const std::vector<Seen>& seen) const {
  const std::lock_guard lock(lock_);
  return std::any_of(seen.begin(), seen.end(), [&](const Seen& each) {
    const bool has_seen =
        each.lane == accessor.lane || each.block_time < accessor.order->block_time();
    if (!has_seen) return false;
    const std::vector<Operation>& there = operations_.at(each.place);
    const auto end = there.begin() + static_cast<std::ptrdiff_t>(each.operations);
    return std::any_of(there.begin(), end,
                       [&](const Operation& operation) { return operation.covers(access); });
  });
}

}  // namespace attest::simt
