#include "gpu/simt/block.hpp"

#include <algorithm>
#include <bit>
#include <exception>
#include <utility>

#include "core/rng.hpp"
#include "gpu/simt/source_line.hpp"

namespace attest::simt {
namespace {

thread_local Block* current_block = nullptr;

std::uint32_t bit(std::uint32_t lane) { return std::uint32_t{1} << lane; }

std::uint32_t first_bits(std::uint32_t count) {
  return count >= kWarpLanes ? ~std::uint32_t{0} : bit(count) - 1;
}

}  // namespace

Block::Block() = default;
Block::~Block() = default;

Block* Block::current() {
  return current_block != nullptr && current_block->running_ != nullptr ? current_block : nullptr;
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
  if (lanes_.size() < count_) lanes_.resize(count_);
  warps_.assign(warps, Warp{});
  for (std::uint32_t w = 0; w < warps; ++w) {
    warps_[w].live = warps_[w].runnable = first_bits(count_ - w * kWarpLanes);
  }
  runnable_warps_ = first_bits(warps);
  for (std::uint32_t n = 0; n < count_; ++n) {
    Lane& lane = lanes_[n];
    lane.thread = {n % block.x, n / block.x % block.y, n / (block.x * block.y)};
    lane.number = n;
    lane.warp = n / kWarpLanes;
    lane.in_warp = n % kWarpLanes;
    lane.started = lane.ended = false;
  }
  arrived_ = 0;
  barrier_sum_ = barrier_result_ = 0;
  running_ = nullptr;
  stopped_ = false;
  reported_.clear();
  shared_.begin(dynamic_shared_bytes, emulation.shared_bytes_limit, emulation.shared_checks, warps);
}

void Block::run(const Emulation& emulation, Index3 grid, Index3 block, Index3 index,
                std::int64_t dynamic_shared_bytes, const GlobalMemory& global,
                const std::function<void()>& kernel, std::vector<Diagnosis>& found) {
  prepare(emulation, grid, block, index, dynamic_shared_bytes);
  global_ = &global;
  traffic_.assign(global.ranges().size(), GlobalTraffic{});
  kernel_ = &kernel;
  found_ = &found;
  Block* const outer = std::exchange(current_block, this);
  if (dynamic_shared_bytes > shared_.limit_bytes()) {
    give_up(Fault::shared_budget,
            std::to_string(dynamic_shared_bytes) + " bytes of dynamic shared memory, but a block " +
                "may have " + std::to_string(shared_.limit_bytes()),
            {});
  } else {
    // Comes back when all lanes have returned, or the block was given up.
    Fiber::change(thread_, take_up(*next_lane()));
    unwind();
  }
  running_ = nullptr;
  current_block = outer;
}

// Lanes that wait are resumed, so that LaneStopped runs the destructors on their stacks.
void Block::unwind() {
  for (std::uint32_t n = 0; n < count_; ++n) {
    if (lanes_[n].started && !lanes_[n].ended) Fiber::change(thread_, take_up(lanes_[n]));
  }
}

void Block::lane_entry() {
  Block& block = *current_block;
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
  --live_;
  Warp& warp = warps_[lane.warp];
  warp.live &= ~bit(lane.in_warp);
  warp.runnable &= ~bit(lane.in_warp);
  if (warp.runnable == 0) runnable_warps_ &= ~bit(lane.warp);
  if (!stopped_) {
    for (const Group& group : warp.groups) {
      if (group.arrived != 0 && (group.mask & bit(lane.in_warp)) != 0) {
        give_up(Fault::exited_lane,
                "lane " + std::to_string(lane.number) +
                    " returns while others wait for it in a collective whose mask names it",
                group.where);
        break;
      }
    }
    // Lanes that have returned are not waited for.
    if (!stopped_ && live_ > 0 && arrived_ == live_) release_barrier();
  }
  Lane* next = stopped_ || live_ == 0 ? nullptr : next_lane();
  if (next == nullptr && !stopped_ && live_ > 0) {
    give_up(Fault::deadlock, waiting_lanes(), {});
  }
  Fiber& own = *lane.fiber;
  if (next == nullptr) {
    Fiber::change(own, thread_);
  } else {
    Fiber::change(own, take_up(*next));
  }
  std::terminate();  // a lane that has ended is never resumed
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
  random_ = mix(random_, 1);
  for (auto skip = random_ % static_cast<std::uint64_t>(std::popcount(candidates)); skip > 0;
       --skip) {
    candidates &= candidates - 1;
  }
  return static_cast<std::uint32_t>(std::countr_zero(candidates));
}

Lane* Block::next_lane() {
  if (runnable_warps_ == 0) return nullptr;
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
    if (lane.fiber == nullptr) {
      lane.fiber = std::make_unique<Fiber>(lane_entry);
    } else {
      lane.fiber->restart(lane_entry);
    }
  }
  return *lane.fiber;
}

void Block::wait() {
  Lane& self = *running_;
  Warp& warp = warps_[self.warp];
  warp.runnable &= ~bit(self.in_warp);
  if (warp.runnable == 0) runnable_warps_ &= ~bit(self.warp);
  if (Lane* next = next_lane()) {
    Fiber::change(*self.fiber, take_up(*next));
  } else {
    give_up(Fault::deadlock, waiting_lanes(), self.where);
    Fiber::change(*self.fiber, thread_);
  }
  if (stopped_) throw LaneStopped{};
}

void Block::release_barrier() {
  arrived_ = 0;
  barrier_result_ = std::exchange(barrier_sum_, 0);
  shared_.block_barrier();
  runnable_warps_ = 0;
  for (std::uint32_t w = 0; w < warps_.size(); ++w) {
    warps_[w].runnable = warps_[w].live;
    if (warps_[w].live != 0) runnable_warps_ |= bit(w);
  }
}

int Block::barrier(int value, const char* operation, SourceLine where) {
  if (arrived_ == 0) {
    barrier_where_ = where;
  } else if (!(barrier_where_ == where)) {
    stop(Fault::divergence,
         "lane " + std::to_string(running_->number) + " comes to " + operation +
             " here while others wait in that of " + barrier_where_.to_string(),
         where);
  }
  running_->operation = operation;
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

void Block::collective(std::uint32_t mask, const char* operation, SourceLine where,
                       const void* given, void* taken, Finish finish) {
  Lane& self = *running_;
  Warp& warp = warps_[self.warp];
  const auto who = [&self] { return "lane " + std::to_string(self.number); };
  if ((mask & bit(self.in_warp)) == 0) {
    stop(Fault::outside_mask, who() + " is not in the mask of its own " + operation, where);
  }
  if ((mask & ~warp.live) != 0) {
    const auto missing = static_cast<std::uint32_t>(std::countr_zero(mask & ~warp.live));
    stop(Fault::exited_lane,
         std::string("the mask of ") + operation + " names lane " +
             std::to_string(self.warp * kWarpLanes + missing) + ", which has returned or never was",
         where);
  }
  Group& group = warp.groups[static_cast<std::size_t>(std::countr_zero(mask))];
  if (group.arrived == 0) {
    group = {mask, 0, operation, where};
  } else if (group.mask != mask || group.operation != operation) {
    stop(Fault::divergence,
         who() + " comes to " + operation + " with another mask or operation than the lanes that " +
             "wait in " + group.where.to_string(),
         where);
  }
  self.operation = operation;
  self.where = where;
  self.given = given;
  self.taken = taken;
  group.arrived |= bit(self.in_warp);
  if (group.arrived != mask) {
    wait();
    return;
  }
  Exchange exchange;
  exchange.mask = mask;
  for (std::uint32_t k = 0; k < kWarpLanes; ++k) {
    if ((mask & bit(k)) == 0) continue;
    exchange.given[k] = lanes_[self.warp * kWarpLanes + k].given;
    exchange.taken[k] = lanes_[self.warp * kWarpLanes + k].taken;
  }
  group.arrived = 0;
  warp.runnable |= mask;
  runnable_warps_ |= bit(self.warp);
  finish(*this, exchange);
}

void Block::warp_barrier(std::uint32_t mask, SourceLine where) {
  collective(mask, "__syncwarp", where, nullptr, nullptr, [](Block& block, const Exchange&) {
    block.shared_.warp_barrier(block.running_->warp);
  });
}

void Block::report(Fault fault, std::string text, SourceLine where) {
  if (found_->size() < emulation_.most_diagnoses) {
    found_->push_back({fault, std::move(text), where, index_});
  }
}

void Block::report_at(Fault fault, std::string text, const void* return_address) {
  if (found_->size() >= emulation_.most_diagnoses ||
      std::find(reported_.begin(), reported_.end(), return_address) != reported_.end()) {
    return;
  }
  reported_.push_back(return_address);
  report(fault, std::move(text), line_of_code(return_address));
}

void Block::give_up(Fault fault, std::string text, SourceLine where) {
  report(fault, std::move(text), where);
  stopped_ = true;
}

void Block::stop(Fault fault, std::string text, SourceLine where) {
  give_up(fault, std::move(text), where);
  throw LaneStopped{};
}

// Lanes 0-15 wait in __syncthreads (a.cuh:3); lanes 16-31 …: at most a few.
std::string Block::waiting_lanes() const {
  constexpr int kMostGroups = 4;
  std::string text;
  int groups = 0;
  for (std::uint32_t n = 0; n < count_;) {
    const Lane& first = lanes_[n];
    std::uint32_t last = n;
    const auto alike = [&](const Lane& lane) {
      if (lane.ended || first.ended) return lane.ended && first.ended;
      return std::string(lane.operation) == first.operation && lane.where == first.where;
    };
    while (last + 1 < count_ && alike(lanes_[last + 1])) ++last;
    if (++groups > kMostGroups) return text + "; …";
    if (!text.empty()) text += "; ";
    text += last == n ? "lane " + std::to_string(n)
                      : "lanes " + std::to_string(n) + "-" + std::to_string(last);
    if (first.ended) {
      text += last == n ? " has returned" : " have returned";
    } else {
      text += last == n ? " waits in " : " wait in ";
      text += std::string(first.operation) + " (" + first.where.to_string() + ")";
    }
    n = last + 1;
  }
  return text;
}

}  // namespace attest::simt
