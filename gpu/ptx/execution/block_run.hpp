#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "gpu/ptx/execution/barriers.hpp"
#include "gpu/ptx/execution/choices.hpp"
#include "gpu/ptx/execution/cluster_barrier.hpp"
#include "gpu/ptx/execution/special_registers.hpp"
#include "gpu/ptx/execution/warp.hpp"
#include "gpu/ptx/products/warpgroups.hpp"
#include "gpu/ptx/program/program.hpp"
#include "gpu/simt/async/async_block.hpp"
#include "gpu/simt/async/async_copy.hpp"
#include "gpu/simt/launch.hpp"
#include "gpu/simt/memory/global_memory.hpp"
#include "gpu/simt/memory/global_races.hpp"
#include "gpu/simt/memory/shared_memory.hpp"

namespace attest::ptx {

/// A launch as each of its blocks sees it.
struct Launch {
  const Program& program;
  const simt::LaunchShape& shape;
  const simt::GlobalMemory& global;  // buffers and the module's own variables
  std::span<const std::byte> parameters;
  Choices choices;
};

/// One block: warps that take turns on one thread, its memory, and what is found in it.
class BlockRun final : public simt::AsyncBlock {
 public:
  /// Runs the block to its end, or until it is given up.
  void run(const Launch& launch, simt::Index3 index, const simt::Emulation& emulation,
           simt::GlobalRaces* races, simt::LaunchReport& report);

  const Choices& choices() const { return launch_->choices; }
  const Program& program() const { return launch_->program; }
  std::span<const std::byte> parameters() const { return launch_->parameters; }
  LanePlace place(std::uint32_t warp, std::uint32_t lane) const;
  std::vector<Warp>& warps() { return warps_; }
  Barriers& barriers() { return barriers_; }
  ClusterBarrier& cluster_barrier() { return cluster_barrier_; }
  Warpgroups& warpgroups() { return warpgroups_; }
  std::byte* local(const Warp& warp, std::uint32_t lane) {
    return local_.data() + number_of(warp, lane) * program().local_bytes;
  }
  simt::AsyncCopies& copies(const Warp& warp, std::uint32_t lane) {
    return copies_[number_of(warp, lane)];
  }

  /// Checks, notes and counts an access to global memory; false where it may not be carried out.
  bool touch_global(const Warp& warp, const Instruction& in, std::uint32_t lane,
                    const void* pointer, std::size_t bytes, simt::GlobalUse use);
  /// Carries out in one go what touch_global does for reads of the lanes, each where its address
  /// says, as far as a glance tells that they are in order; which lanes' those are.
  std::uint32_t glance_global(const Warp& warp, std::uint32_t lanes,
                              const Lanes<std::uint64_t>& addresses, std::size_t bytes);
  /// As touch_global for shared memory, with nothing to count.
  bool touch_shared(const Warp& warp, const Instruction& in, std::uint32_t lane,
                    const void* pointer, std::size_t bytes, simt::SharedMemory::Access access);

  /// An asynchronous copy to shared memory begins; false where it may not be carried out.
  bool begin_copy(const Warp& warp, const Instruction& in, std::uint32_t lane, const void* to,
                  std::size_t bytes);

  /// A lane's number in the block.
  static std::uint32_t number_of(const Warp& warp, std::uint32_t lane) {
    return warp.number() * static_cast<std::uint32_t>(kWarpLanes) + lane;
  }

  /// The lane whose asynchronous instruction is carried out next.
  void set_lane(std::uint32_t number) { lane_ = number; }
  /// The warp waits for the mbarriers that so many of its lanes wait for.
  void wait_for_mbarriers(Warp& warp, const Instruction& in, std::uint32_t lanes);

  std::uint32_t lane_number() const override { return lane_; }
  void wake(std::uint32_t lane) override;
  void report_once(const simt::Finding& finding, simt::SourceLine where) override;
  [[noreturn]] void stop(simt::Fault fault, std::string text, simt::SourceLine where) override;
  void read_row(int tensor, const void* from, void* to, std::size_t bytes,
                simt::SourceLine where) override;
  void write_row(int tensor, void* to, const void* from, std::size_t bytes,
                 simt::SourceLine where) override;
  const std::string& tensor_name(int tensor) const override {
    return launch_->global.ranges()[static_cast<std::size_t>(tensor)].name;
  }

  /// Adds a diagnosis with the lines of PTX and source, once for each fault and instruction.
  void report(const simt::Finding& finding, const Instruction& in);
  /// Adds one and gives the block up.
  void give_up(const simt::Finding& finding, const Instruction& in);
  void give_up_endless(const Instruction& in);

  /// A fence of the device's scope; an atomic operation on global memory has been carried out.
  void fence_device(const Warp& warp, std::uint32_t lane);
  void note_operation(const Warp& warp, std::uint32_t lane, const void* place);

  /// Tells whether values are followed that are read while another thread may write there; gives
  /// the lanes that have read some since the last call; notes that one of them matters.
  bool follows_late_values() const { return races_ != nullptr && races_->knows_late_reads(); }
  std::uint32_t take_late_lanes() { return std::exchange(late_lanes_, 0); }
  void note_late_matters() { races_->note_late_matters(); }

  /// False once the block has executed more than it may.
  bool count_instruction() { return ++instructions_ <= launch_->choices.most_instructions; }

 private:
  struct Stopped {};  // thrown to the block's loop

  simt::GlobalRaces::Accessor accessor(std::uint32_t number) const {
    return {index_, number, &shared_.order(), &fences_, &seen_};
  }
  const Instruction& instruction_at(simt::SourceLine where) const;
  bool touch_global(std::uint32_t number, const Instruction& in, const void* pointer,
                    std::size_t bytes, std::size_t alignment, simt::GlobalUse use);
  void take_turns();
  int tensor_of(const void* pointer, std::size_t bytes, simt::GlobalUse use) const;
  bool is_aligned(const Warp& warp, const Instruction& in, std::uint32_t lane, const void* pointer,
                  std::size_t bytes);
  void begin(const Launch& launch, simt::Index3 index, const simt::Emulation& emulation);
  std::vector<std::size_t> order_of_warps();
  bool can_go_on() const;
  void give_up_deadlocked();

  const Launch* launch_ = nullptr;
  simt::Index3 index_;
  simt::Emulation emulation_;
  simt::GlobalRaces* races_ = nullptr;
  simt::LaunchReport* report_ = nullptr;
  std::vector<Warp> warps_;
  Barriers barriers_;
  ClusterBarrier cluster_barrier_;
  simt::BlockFences fences_;
  std::vector<simt::BlockOrder::Seen> seen_;  // atomic operations of other blocks
  Warpgroups warpgroups_;
  std::vector<std::byte> local_;
  std::vector<simt::AsyncCopies> copies_;
  std::vector<simt::GlobalTraffic> traffic_;
  std::vector<std::pair<simt::Fault, int>> reported_;  // with the PTX line
  std::uint64_t instructions_ = 0, random_ = 0;
  std::uint32_t lanes_ = 0, lane_ = 0, late_lanes_ = 0;
  struct Waiting {
    const Instruction* in = nullptr;
    std::uint32_t lanes = 0;
  };
  std::vector<Waiting> waiting_;  // for mbarriers, by warp
  bool given_up_ = false;
};

}  // namespace attest::ptx
