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

}  // namespace attest::simt
