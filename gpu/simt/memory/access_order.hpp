#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

/// Which accesses of a block's lanes come before which, by its barriers alone.
namespace attest::simt {

/// Vector clocks, exact for the barriers that there are. A barrier of the block orders all lanes,
/// so its clock is one number. A __syncwarp orders the lanes that take part, and what each of them
/// had seen of others: 32 x 32 numbers for a warp. Lanes of different warps are ordered by barriers
/// of the block, and by hand-overs (an mbarrier's arrival and wait), from the first of which each
/// lane keeps a number for every other.
/// [gpu/simt/memory/access_order_test "a race is found where the definition says"]
///
/// Tensor copies and products of a warpgroup touch memory by themselves: the lanes of one more warp
/// stand for them.
///
/// Cost: a __syncwarp 32 numbers for each lane that takes part; a question one comparison. With
///       hand-overs each of them, and each hand-over, the number of lanes.
class AccessOrder {
 public:
  static constexpr std::uint32_t kWarpLanes = 32;

  /// Vector clock of a lane at its hand-over: of each lane, accesses seen up to that warp time.
  using Clock = std::vector<std::uint32_t>;

  /// Resets the order at a block's beginning.
  void begin(std::uint32_t warps);

  /// The k-th lane of the warp that is none of the kernel's.
  std::uint32_t engine(std::uint32_t k) const { return kernel_lanes_ + k; }
  bool is_engine(std::uint32_t lane) const { return lane >= kernel_lanes_; }

  void block_barrier() { ++block_time_; }
  /// Orders the lanes of a warp that came to a barrier.
  void warp_barrier(std::uint32_t warp, std::uint32_t lanes);

  /// Before the first hand-over, and before the accesses that it orders.
  void begin_hand_overs();
  bool has_hand_overs() const { return !elsewhere_.empty(); }
  /// Adds to the clock what comes before what the lane does next.
  void release(std::uint32_t lane, Clock& clock);
  /// All that the clock has comes before what the lane does next.
  void acquire(std::uint32_t lane, const Clock& clock);

  /// When a lane's next access is: barriers of the block, then barriers in its warp.
  std::uint32_t block_time() const { return block_time_; }
  std::uint32_t warp_time(std::uint32_t warp) const { return warps_[warp].time; }

  /// Returns those of `lanes` of a warp whose accesses at `warp_time`, since the block's last
  /// barrier, do not come before what the lane does now. The lane's own always do.
  std::uint32_t unordered(std::uint32_t lane, std::uint32_t warp, std::uint32_t lanes,
                          std::uint32_t warp_time) const;

 private:
  using Times = std::array<std::uint32_t, kWarpLanes>;
  struct Warp {
    std::uint32_t time = 1;
    std::uint32_t whole_time = 0;  // of the last barrier of all lanes, which orders all before it
    // seen[a][b]: accesses of lane b up to that time come before what lane a does now.
    std::array<Times, kWarpLanes> seen{};
  };

  std::uint32_t* seen_elsewhere(std::uint32_t lane) {
    return elsewhere_.data() + std::size_t{lane} * warps_.size() * kWarpLanes;
  }

  std::uint32_t block_time_ = 1, kernel_lanes_ = 0;
  std::vector<Warp> warps_;
  // By lane, what it has seen of each lane of other warps; empty without hand-overs.
  std::vector<std::uint32_t> elsewhere_;
};

/// The accesses of one kind to one place, as far as later ones need to know of them: what comes
/// after all that are kept comes after all there were.
class Accesses {
 public:
  Accesses() = default;
  Accesses(const Accesses& other) { *this = other; }
  Accesses& operator=(const Accesses& other) {
    block_time_ = other.block_time_;
    latest_ = other.latest_;
    if (earlier_ != nullptr || other.earlier_ != nullptr) {
      earlier_ = other.earlier_ ? std::make_unique<Earlier>(*other.earlier_) : nullptr;
    }
    return *this;
  }

  void clear() { block_time_ = 0; }
  /// Runs at each access, as the next two do: the usual cases without a call.
  void add(std::uint32_t lane, const AccessOrder& order) {
    const std::uint32_t warp = lane / AccessOrder::kWarpLanes, time = order.warp_time(warp);
    const std::uint32_t bit = std::uint32_t{1} << lane % AccessOrder::kWarpLanes;
    if (!has_any_now(order)) {
      block_time_ = order.block_time();
      latest_ = {time, bit, static_cast<std::uint16_t>(warp)};
      earlier_.reset();
    } else if (latest_.warp == warp && latest_.time == time) {
      latest_.lanes |= bit;
    } else if (latest_.warp != warp && !order.has_hand_overs()) {
      // Nothing in this block time is after both warps.
      latest_.elsewhere = static_cast<std::uint16_t>(lane);
    } else {
      add_later(lane, order);
    }
  }

  /// Tells whether there are any since the block's last barrier.
  bool has_any_now(const AccessOrder& order) const { return block_time_ == order.block_time(); }

  /// Tells whether all come before what `lane` does now: faster than the next.
  bool ordered(std::uint32_t lane, const AccessOrder& order) const {
    return !has_any_now(order) || !unordered_now(lane, order);
  }

  /// A lane whose access does not come before what `lane` does now.
  std::optional<std::uint32_t> unordered(std::uint32_t lane, const AccessOrder& order) const {
    if (!has_any_now(order)) return std::nullopt;
    return unordered_now(lane, order);
  }

 private:
  // In this block time.
  void add_later(std::uint32_t lane, const AccessOrder& order);
  std::optional<std::uint32_t> unordered_now(std::uint32_t lane, const AccessOrder& order) const;

  static constexpr std::uint16_t kNone = 0xFFFF;
  struct AtTime {
    std::uint32_t time = 0, lanes = 0;  // time of the warp
    std::uint16_t warp = 0;
    std::uint16_t elsewhere = kNone;  // a lane of another warp than the latest, without hand-overs
  };
  using Earlier = std::vector<AtTime>;

  std::uint32_t block_time_ = 0;  // 0: none
  AtTime latest_;
  std::unique_ptr<Earlier> earlier_;  // not before the latest: barriers of all lanes leave none
};
static_assert(sizeof(Accesses) == 24, "histories of all words fit into a cache");

}  // namespace attest::simt
