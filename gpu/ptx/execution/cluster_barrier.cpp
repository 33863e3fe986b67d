#include "gpu/ptx/execution/cluster_barrier.hpp"

#include <algorithm>
#include <string>

#include "gpu/ptx/execution/block_run.hpp"

namespace attest::ptx {

using simt::Fault;

void ClusterBarrier::begin(BlockRun& block) {
  block_ = &block;
  places_.assign(block.warps().size(), {});
  completed_ = 0;
  running_.clear();
  complete_.clear();
}

bool ClusterBarrier::require_whole(const Warp& warp, const Instruction& in) {
  if (warp.mask() == warp.live()) return true;
  block_->give_up({Fault::divergence,
                   "warp " + std::to_string(warp.number()) +
                       " comes to the cluster's barrier while some of its lanes are elsewhere"},
                  in);
  return false;
}

void ClusterBarrier::arrive(Warp& warp, const Instruction& in, bool releases) {
  if (!require_whole(warp, in)) return;
  Place& place = places_[warp.number()];
  if (place.arrivals > completed_) {
    return block_->give_up(
        {Fault::divergence, "warp " + std::to_string(warp.number()) +
                                " comes to the cluster's barrier again before all have come"},
        in);
  }
  ++place.arrivals;
  for (std::uint32_t lane = 0; releases && lane < kWarpLanes; ++lane) {
    if ((warp.mask() >> lane & 1U) == 0) continue;
    block_->shared().order().release(BlockRun::number_of(warp, lane), running_);
  }
  release_complete();
}

void ClusterBarrier::acquire(const Warp& warp) {
  for (std::uint32_t lane = 0; lane < kWarpLanes; ++lane) {
    if ((warp.live() >> lane & 1U) == 0) continue;
    block_->shared().order().acquire(BlockRun::number_of(warp, lane), complete_);
  }
}

void ClusterBarrier::wait(Warp& warp, const Instruction& in) {
  if (!require_whole(warp, in)) return;
  Place& place = places_[warp.number()];
  if (place.arrivals <= completed_) return acquire(warp);
  place.waits = &in;
  warp.wait_at_barrier();
}

void ClusterBarrier::release_complete() {
  bool any = false;
  for (const Warp& warp : block_->warps()) {
    const bool has_come = places_[warp.number()].arrivals > completed_;
    if (!has_come && warp.state() != Warp::State::ended) return;
    any = any || has_come;
  }
  if (!any) return;
  ++completed_;
  std::swap(running_, complete_);
  running_.clear();
  block_->mbarriers().fence_init(0, true);
  for (Warp& warp : block_->warps()) {
    Place& place = places_[warp.number()];
    place.arrivals = completed_;
    if (place.waits == nullptr) continue;
    place.waits = nullptr;
    warp.leave_barrier();
    acquire(warp);
  }
}

bool ClusterBarrier::give_up_deadlocked() {
  const auto stuck = std::find_if(places_.begin(), places_.end(),
                                  [](const Place& each) { return each.waits != nullptr; });
  if (stuck == places_.end()) return false;
  block_->give_up({Fault::deadlock, "warp " + std::to_string(stuck - places_.begin()) +
                                        " waits at the cluster's barrier, to which not all come"},
                  *stuck->waits);
  return true;
}

}  // namespace attest::ptx
