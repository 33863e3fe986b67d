// Places where lanes of a block wait for one another: its barrier, and collectives of a warp.
#include <bit>
#include <string>
#include <utility>

#include "gpu/simt/block.hpp"

namespace attest::simt {
namespace {

std::uint32_t bit(std::uint32_t lane) { return std::uint32_t{1} << lane; }

// Compares names that are mostly the same literal.
bool same(std::string_view a, std::string_view b) {
  return (a.data() == b.data() && a.size() == b.size()) || a == b;
}

}  // namespace

// Lanes that have returned are not waited for.
void Block::leave_warp(const Lane& lane) {
  --live_;
  Warp& warp = warps_[lane.warp];
  warp.live &= ~bit(lane.in_warp);
  warp.runnable &= ~bit(lane.in_warp);
  if (warp.runnable == 0) runnable_warps_ &= ~bit(lane.warp);
  if (stopped_) return;
  for (std::size_t g = warp.groups.size(); g > 0; --g) {
    if (is_complete(warp, warp.groups[g - 1])) complete(lane.warp, g - 1);
  }
  warpgroups_.leave(*this, lane.number);
  if (live_ > 0 && arrived_ == live_) release_barrier();
}

void Block::release_barrier() {
  arrived_ = 0;
  if (live_ < count_) report_returned_before_barrier();
  barrier_result_ = std::exchange(barrier_sum_, 0);
  shared_.block_barrier();
  runnable_warps_ = 0;
  for (std::uint32_t w = 0; w < warps_.size(); ++w) {
    warps_[w].runnable = warps_[w].live;
    if (warps_[w].live != 0) runnable_warps_ |= bit(w);
  }
}

int Block::barrier(int value, std::string_view operation, SourceLine where) {
  if (arrived_ == 0) {
    barrier_operation_ = operation;
    barrier_where_ = where;
  } else if (!(barrier_where_ == where) || !same(barrier_operation_, operation)) {
    stop(Fault::divergence,
         "lane " + std::to_string(running_->number) + " comes to " + std::string(operation) +
             " here while others wait in " + std::string(barrier_operation_) + " of " +
             barrier_where_.to_string(),
         where);
  }
  running_->operation = operation;
  running_->mask = 0;
  running_->where = where;
  barrier_sum_ += value;
  ++arrived_;
  if (arrived_ == live_) {
    release_barrier();
  } else {
    wait();
  }
  return barrier_result_;
}

bool Block::is_complete(const Warp& warp, const Group& group) const {
  return group.arrived == (group.mask & warp.live);
}

void Block::complete(std::uint32_t warp_number, std::size_t index) {
  Warp& warp = warps_[warp_number];
  const Group group = warp.groups[index];
  warp.groups[index] = warp.groups.back();
  warp.groups.pop_back();
  Exchange exchange;
  exchange.mask = group.mask;
  exchange.lanes = group.arrived;
  for (std::uint32_t k = 0; k < kWarpLanes; ++k) {
    if ((group.arrived & bit(k)) == 0) continue;
    exchange.given[k] = lanes_[warp_number * kWarpLanes + k].given;
    exchange.taken[k] = lanes_[warp_number * kWarpLanes + k].taken;
  }
  warp.runnable |= group.arrived;
  runnable_warps_ |= bit(warp_number);
  group.finish(*this, warp_number, exchange);
  if (const std::uint32_t returned = group.mask & warp.lanes & ~group.arrived; returned != 0) {
    const auto first = static_cast<std::uint32_t>(std::countr_zero(returned));
    report_returned(warp_number * kWarpLanes + first, group.operation, group.where);
  }
}

void Block::collective(std::uint32_t mask, std::string_view operation, SourceLine where,
                       const void* given, void* taken, Finish finish) {
  Lane& self = *running_;
  Warp& warp = warps_[self.warp];
  const auto who = [&] {
    return "lane " + std::to_string(self.number) + " comes to " + std::string(operation);
  };
  if ((mask & bit(self.in_warp)) == 0) {
    stop(Fault::outside_mask, who() + " with a mask that does not name it", where);
  }
  std::size_t index = 0;
  while (index < warp.groups.size() && warp.groups[index].mask != mask) ++index;
  if (index > 0 || warp.groups.size() > 1) require_together(warp, mask, operation, where);
  if (index == warp.groups.size()) {
    warp.groups.push_back({mask, 0, operation, where, finish});
  } else if (const Group& waiting = warp.groups[index];
             !same(waiting.operation, operation) ||
             (!(waiting.where == where) && operation != "__syncwarp")) {
    stop(Fault::divergence,
         who() + " with the mask of lanes that wait in " +
             std::string(warp.groups[index].operation) + " of " +
             warp.groups[index].where.to_string(),
         where);
  }
  self.operation = operation;
  self.mask = mask;
  self.where = where;
  self.given = given;
  self.taken = taken;
  warp.groups[index].arrived |= bit(self.in_warp);
  if (is_complete(warp, warp.groups[index])) {
    complete(self.warp, index);
  } else {
    wait();
  }
}

void Block::warp_barrier(std::uint32_t mask, SourceLine where) {
  collective(mask, "__syncwarp", where, nullptr, nullptr,
             [](Block& block, std::uint32_t warp, const Exchange& exchange) {
               block.shared_.warp_barrier(warp, exchange.lanes);
             });
}

}  // namespace attest::simt
