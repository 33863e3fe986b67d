#include "gpu/ptx/execution/barriers.hpp"

#include <algorithm>
#include <bit>
#include <string>

#include "gpu/ptx/execution/block_run.hpp"

namespace attest::ptx {

using simt::Fault;

namespace {

template <class F>
void for_each_lane(const Warp& warp, std::uint32_t lanes, F&& function) {
  for (; lanes != 0; lanes &= lanes - 1) {
    function(BlockRun::number_of(warp, static_cast<std::uint32_t>(std::countr_zero(lanes))));
  }
}

}  // namespace

void Barriers::begin(BlockRun& block) {
  block_ = &block;
  for (Barrier& barrier : barriers_) barrier = {};
  const auto& code = block.program().code;
  const bool has_partial = std::any_of(
      code.begin(), code.end(), [](const Instruction& each) { return each.is_partial_barrier; });
  if (has_partial) block.shared().order().begin_hand_overs();
}

void Barriers::arrive(Warp& warp, const Instruction& in, std::uint32_t number,
                      std::uint32_t threads, Reduction reduction, std::uint32_t values,
                      bool waits) {
  const auto refuse_here = [&](Fault fault, const std::string& text) {
    block_->give_up({fault, "warp " + std::to_string(warp.number()) + text}, in);
  };
  if (number >= kBarriers || threads % kWarpLanes != 0) {
    return refuse_here(Fault::divergence, " comes to barrier " + std::to_string(number) + " of " +
                                              std::to_string(threads) +
                                              " threads; there are 16, of whole warps");
  }
  if (warp.mask() != warp.live()) {
    return refuse_here(Fault::divergence,
                       " comes to a barrier of the block while some of its lanes are elsewhere");
  }
  Barrier& barrier = barriers_[number];
  if (!barrier.arrivals.empty() && (barrier.threads != threads || barrier.reduction != reduction)) {
    return refuse_here(Fault::divergence,
                       " comes to barrier " + std::to_string(number) +
                           " otherwise than those that wait there since PTX line " +
                           std::to_string(barrier.arrivals[0].instruction->line));
  }
  barrier.threads = threads;
  barrier.reduction = reduction;
  barrier.arrivals.push_back({&warp, &in, warp.mask(), values & warp.mask(), waits});
  simt::AccessOrder& order = block_->shared().order();
  if (order.has_hand_overs()) {  // what the warp does later is not handed over
    for_each_lane(warp, warp.mask(),
                  [&](std::uint32_t lane) { order.release(lane, barrier.clock); });
  }
  if (waits) warp.wait_at_barrier();
  if (!waits && is_complete(barrier)) release(barrier);
}

bool Barriers::is_complete(const Barrier& barrier) const {
  if (barrier.arrivals.empty()) return false;
  if (barrier.threads != 0) return barrier.arrivals.size() * kWarpLanes >= barrier.threads;
  const auto& warps = block_->warps();
  const auto live = std::count_if(warps.begin(), warps.end(), [](const Warp& warp) {
    return warp.state() != Warp::State::ended;
  });
  return barrier.arrivals.size() >= static_cast<std::size_t>(live);
}

// Barriers of all threads count those, too, that have returned: PTX ISA leaves open how.
void Barriers::report_ended(const Barrier& barrier) {
  if (barrier.threads != 0) return;
  for (const Warp& warp : block_->warps()) {
    if (warp.state() != Warp::State::ended) continue;
    block_->report(
        {Fault::exited_lane, "warp " + std::to_string(warp.number()) +
                                 " has returned without coming to a barrier of the block"},
        *barrier.arrivals[0].instruction);
  }
}

// A barrier at which all wait, or all that have not returned, orders the whole block.
void Barriers::order(const Barrier& barrier) {
  // Compilers have no fence between mbarriers' initialisation, a barrier and tensor copies.
  block_->mbarriers().fence_init(0, true);
  simt::AccessOrder& order = block_->shared().order();
  const bool all_wait = std::all_of(barrier.arrivals.begin(), barrier.arrivals.end(),
                                    [](const Arrival& each) { return each.waits; });
  const bool is_whole = barrier.arrivals.size() == block_->warps().size();
  if (!order.has_hand_overs() || (is_whole && all_wait)) return block_->shared().block_barrier();
  for (const Arrival& each : barrier.arrivals) {
    if (!each.waits) continue;
    for_each_lane(*each.warp, each.lanes,
                  [&](std::uint32_t lane) { order.acquire(lane, barrier.clock); });
  }
}

void Barriers::release(Barrier& barrier) {
  report_ended(barrier);
  order(barrier);
  std::uint32_t count = 0;
  bool all = true;
  for (const Arrival& each : barrier.arrivals) {
    count += static_cast<std::uint32_t>(std::popcount(each.values));
    all = all && each.values == each.lanes;
  }
  for (const Arrival& each : barrier.arrivals) {
    const std::uint32_t slot = each.instruction->slots[0];
    if (barrier.reduction == Reduction::popc) {
      Lanes<std::uint32_t> counts;
      counts.fill(count);
      each.warp->write(slot, counts);
    } else if (barrier.reduction != Reduction::none) {
      const bool value = barrier.reduction == Reduction::and_ ? all : count != 0;
      each.warp->write_predicates(slot, value ? kAllLanes : 0);
    }
    if (each.waits) each.warp->leave_barrier();
  }
  barrier.arrivals.clear();
  barrier.clock.clear();
}

void Barriers::release_complete() {
  for (Barrier& barrier : barriers_) {
    if (is_complete(barrier)) release(barrier);
  }
}

void Barriers::give_up_deadlocked() {
  for (const Barrier& barrier : barriers_) {
    for (const Arrival& each : barrier.arrivals) {
      if (!each.waits || each.warp->state() != Warp::State::at_barrier) continue;
      const auto number = std::to_string(&barrier - barriers_.data());
      return block_->give_up(
          {Fault::deadlock, "warp " + std::to_string(each.warp->number()) + " waits at barrier " +
                                number + ", to which too few come"},
          *each.instruction);
    }
  }
}

}  // namespace attest::ptx
