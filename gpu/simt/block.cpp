#include "gpu/simt/block.hpp"

#include <bit>
#include <exception>
#include <utility>

#include "core/error.hpp"
#include "core/rng.hpp"

namespace attest::simt {
namespace {

std::uint32_t bit(std::uint32_t lane) { return std::uint32_t{1} << lane; }

std::uint32_t first_bits(std::uint32_t count) {
  return count >= kWarpLanes ? ~std::uint32_t{0} : bit(count) - 1;
}

// SplitMix64 (Steele, Lea and Flood 2014): a lane is chosen at every switch, so a draw must be
// cheap.
std::uint64_t drawn(std::uint64_t& state) {
  state += 0x9e3779b97f4a7c15u;
  std::uint64_t bits = state;
  bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9u;
  bits = (bits ^ bits >> 27) * 0x94d049bb133111ebu;
  return bits ^ bits >> 31;
}

// Compares names that are mostly the same literal.
bool same(std::string_view a, std::string_view b) {
  return (a.data() == b.data() && a.size() == b.size()) || a == b;
}

}  // namespace

Block::Block() = default;
Block::~Block() = default;

void Block::refuse_outside() {
  throw InternalError("a word of CUDA outside of an emulated kernel");
}

void Block::prepare(const Emulation& emulation, Index3 grid, Index3 block, Index3 index,
                    std::int64_t dynamic_shared_bytes) {
  emulation_ = emulation;
  grid_ = grid;
  size_ = block;
  index_ = index;
  count_ = block.x * block.y * block.z;
  live_ = count_;
  const std::uint32_t warps = (count_ + kWarpLanes - 1) / kWarpLanes;
  random_ = mix(emulation.seed, mix(index.x, mix(index.y, index.z)));
  if (lanes_.size() < count_) make_lanes();
  warps_.assign(warps, Warp{});
  for (std::uint32_t w = 0; w < warps; ++w) {
    warps_[w].lanes = first_bits(count_ - w * kWarpLanes);
    warps_[w].live = warps_[w].runnable = warps_[w].lanes;
  }
  runnable_warps_ = first_bits(warps);
  for (std::uint32_t n = 0; n < count_; ++n) {
    Lane& lane = lanes_[n];
    lane.thread = {n % block.x, n / block.x % block.y, n / (block.x * block.y)};
    lane.number = n;
    lane.warp = n / kWarpLanes;
    lane.in_warp = n % kWarpLanes;
    lane.started = lane.ended = false;
    lane.copies = {};
  }
  arrived_ = 0;
  barrier_sum_ = barrier_result_ = 0;
  running_ = nullptr;
  stopped_ = false;
  reported_.clear();
  shared_.begin(dynamic_shared_bytes, emulation.shared_bytes_limit, emulation.shared_checks, warps);
  mbarriers_.begin();
  tensor_copies_.begin(count_);
  warpgroups_.begin(count_);
}

void Block::make_lanes() {
  lanes_.clear();  // before the stacks that their fibers run on
  stacks_ = std::make_unique<FiberStacks>(count_);
  std::vector<Lane> lanes(count_);
  for (std::uint32_t n = 0; n < count_; ++n) {
    void* const lowest = stacks_->lowest(n);
    lanes[n].fiber = std::make_unique<Fiber>(lowest);
    lanes[n].stack = static_cast<const std::byte*>(lowest);
  }
  lanes_ = std::move(lanes);
}

bool Block::run(const Emulation& emulation, Index3 grid, Index3 block, Index3 index,
                std::int64_t dynamic_shared_bytes, const GlobalMemory& global, GlobalRaces* races,
                const std::function<void()>& kernel, std::vector<Diagnosis>& found) {
  prepare(emulation, grid, block, index, dynamic_shared_bytes);
  global_ = &global;
  races_ = races;
  traffic_.assign(global.ranges().size(), GlobalTraffic{});
  kernel_ = &kernel;
  found_ = &found;
  Block* const outer = std::exchange(current_, this);
  if (dynamic_shared_bytes > shared_.limit_bytes()) {
    give_up(Fault::shared_budget,
            std::to_string(dynamic_shared_bytes) + " bytes of dynamic shared memory, but a block " +
                "may have " + std::to_string(shared_.limit_bytes()),
            {});
  } else {
    // Comes back when all lanes have returned, or the block was given up.
    Fiber::change(thread_, take_up(*next_lane()));
    unwind();
    if (!stopped_) {
      tensor_copies_.end(*this);
      warpgroups_.end(*this);
    }
  }
  running_ = nullptr;
  current_ = outer;
  return !stopped_;
}

// Lanes that wait are resumed, so that LaneStopped runs the destructors on their stacks.
void Block::unwind() {
  for (std::uint32_t n = 0; n < count_; ++n) {
    if (lanes_[n].started && !lanes_[n].ended) Fiber::change(thread_, take_up(lanes_[n]));
  }
}

void Block::lane_entry() {
  Block& block = *current_;
  try {
    (*block.kernel_)();
  } catch (const LaneStopped&) {
    // The diagnosis has been made.
  } catch (const std::exception& error) {
    block.give_up(Fault::exception,
                  "lane " + std::to_string(block.running_->number) + ": " + error.what(), {});
  } catch (...) {
    block.give_up(Fault::exception,
                  "lane " + std::to_string(block.running_->number) + " throws no std::exception",
                  {});
  }
  block.end_lane();
}

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

void Block::end_lane() {
  Lane& lane = *running_;
  lane.ended = true;
  leave_warp(lane);
  Lane* next = stopped_ || live_ == 0 ? nullptr : next_lane();
  if (next == nullptr && !stopped_ && live_ > 0) {
    give_up_deadlocked({});
  }
  Fiber::finish(*lane.fiber, next == nullptr ? thread_ : take_up(*next));
}

std::uint32_t Block::choose(std::uint32_t candidates) {
  switch (emulation_.order) {
    case Order::ascending:
      return static_cast<std::uint32_t>(std::countr_zero(candidates));
    case Order::descending:
      return kWarpLanes - 1 - static_cast<std::uint32_t>(std::countl_zero(candidates));
    case Order::shuffled:
      break;
  }
  const auto count = static_cast<std::uint64_t>(std::popcount(candidates));
  for (auto skip = (drawn(random_) >> 32) * count >> 32; skip > 0; --skip) {
    candidates &= candidates - 1;
  }
  return static_cast<std::uint32_t>(std::countr_zero(candidates));
}

Lane* Block::next_lane() {
  while (runnable_warps_ == 0) {
    if (!tensor_copies_.arrive(*this)) return nullptr;
  }
  // A warp goes on as long as it can, as its lanes do together on a device; shuffled, any may.
  const bool stays = emulation_.order != Order::shuffled && running_ != nullptr &&
                     (runnable_warps_ & bit(running_->warp)) != 0;
  const std::uint32_t warp = stays ? running_->warp : choose(runnable_warps_);
  return &lanes_[warp * kWarpLanes + choose(warps_[warp].runnable)];
}

Fiber& Block::take_up(Lane& lane) {
  running_ = &lane;
  ++switches_;
  if (!lane.started) {
    lane.started = true;
    lane.fiber->restart(lane_entry);
  }
  return *lane.fiber;
}

void Block::wait() {
  Lane& self = *running_;
  Warp& warp = warps_[self.warp];
  warp.runnable &= ~bit(self.in_warp);
  if (warp.runnable == 0) runnable_warps_ &= ~bit(self.warp);
  if (Lane* next = next_lane(); next == &self) {
    return;  // what it waits for has come meanwhile
  } else if (next != nullptr) {
    Fiber::change(*self.fiber, take_up(*next));
  } else {
    give_up_deadlocked(self.where);
    Fiber::change(*self.fiber, thread_);
  }
  if (stopped_) throw LaneStopped{};
}

void Block::suspend(std::string_view operation, SourceLine where) {
  running_->operation = operation;
  running_->mask = 0;
  running_->where = where;
  wait();
}

void Block::wake(std::uint32_t number) {
  const Lane& lane = lanes_[number];
  warps_[lane.warp].runnable |= bit(lane.in_warp);
  runnable_warps_ |= bit(lane.warp);
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
