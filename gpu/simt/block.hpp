#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/simt/async/async_block.hpp"
#include "gpu/simt/async/async_copy.hpp"
#include "gpu/simt/async/mbarrier.hpp"
#include "gpu/simt/async/tensor_copy.hpp"
#include "gpu/simt/diagnosis.hpp"
#include "gpu/simt/fiber/fiber.hpp"
#include "gpu/simt/memory/global_memory.hpp"
#include "gpu/simt/memory/global_races.hpp"
#include "gpu/simt/memory/shared_memory.hpp"
#include "gpu/simt/tensor_core/warpgroup.hpp"

/// One emulated block: its lanes take turns on one thread, each on a stack of its own.
namespace attest::simt {

inline constexpr std::uint32_t kWarpLanes = 32;
inline constexpr std::uint32_t kMostLanes = 1024;

/// Which of the lanes that can go on goes on, and which block begins next.
enum class Order : std::uint8_t { ascending, descending, shuffled };

/// How a launch is emulated.
struct Emulation {
  Order order = Order::ascending;
  std::uint64_t seed = 1;  // of the shuffled order
  std::int64_t shared_bytes_limit = std::int64_t{227}
                                    << 10;  // of a block on compute capability 9.0
  SharedChecks shared_checks = SharedChecks::off;
  int threads = 1;                  // blocks at a time
  std::size_t most_diagnoses = 16;  // the others are dropped
};

/// One thread of the kernel.
struct Lane {
  std::unique_ptr<Fiber> fiber;
  const std::byte* stack = nullptr;  // its lowest byte
  Index3 thread;                     // threadIdx
  std::uint32_t number = 0;          // linear, 0 for the first of the block
  std::uint32_t warp = 0, in_warp = 0;
  bool started = false, ended = false;

  std::string_view operation;  // what it waits in
  std::uint32_t mask = 0;      // of a collective; 0 at a barrier of the block
  SourceLine where;
  const void* given = nullptr;  // what it brings to a collective, and where its result goes
  void* taken = nullptr;

  AsyncCopies copies;
};

/// Operands and results of a collective, for the lanes of `mask` that have come: others have
/// returned or never were. The entries of others are null.
struct Exchange {
  std::uint32_t mask = 0, lanes = 0;
  std::array<const void*, kWarpLanes> given{};
  std::array<void*, kWarpLanes> taken{};
};

/// Thrown through a lane's frames when its block is given up. Kernels do not catch it.
struct LaneStopped {};

class Block final : public AsyncBlock {
 public:
  /// Carries out a collective of a warp once all its lanes have come.
  using Finish = void (*)(Block& block, std::uint32_t warp, const Exchange& exchange);

  Block();
  ~Block() override;

  /// The block of the lane that runs on this thread; null elsewhere. Always inlined, like the
  /// others that the hooks ask at every access: a copy of its own may be one compiled with hooks.
  [[gnu::always_inline]] static Block* current() {
    return current_ != nullptr && current_->running_ != nullptr ? current_ : nullptr;
  }
  /// The same. Throws InternalError elsewhere.
  [[gnu::always_inline]] static Block& running() {
    Block* const block = current();
    if (block == nullptr) refuse_outside();
    return *block;
  }

  /// Runs the kernel once for each lane. Adds diagnoses to `found`. Tells whether the block came to
  /// its end; else it was given up. Throws InternalError when there is no memory for the stacks.
  bool run(const Emulation& emulation, Index3 grid, Index3 block, Index3 index,
           std::int64_t dynamic_shared_bytes, const GlobalMemory& global, GlobalRaces* races,
           const std::function<void()>& kernel, std::vector<Diagnosis>& found);

  const Lane& lane() const { return *running_; }
  /// Tells whether an address is on the running lane's stack.
  [[gnu::always_inline]] bool is_own(const void* pointer) const {
    const auto* const byte = static_cast<const std::byte*>(pointer);
    return byte >= running_->stack && byte < running_->stack + FiberStacks::kStackBytes;
  }
  AsyncCopies& copies() { return running_->copies; }
  Index3 grid() const { return grid_; }
  Index3 size() const { return size_; }
  Index3 index() const { return index_; }
  const GlobalMemory& global() const { return *global_; }
  GlobalRaces* races() const { return races_; }
  [[gnu::always_inline]] Warpgroups& warpgroups() { return warpgroups_; }
  /// Returns the bytes that the block has moved of a tensor.
  GlobalTraffic& traffic(int tensor) { return traffic_[static_cast<std::size_t>(tensor)]; }
  const std::vector<GlobalTraffic>& traffic() const { return traffic_; }
  std::uint64_t switches() const { return switches_; }

  /// Waits until every lane that has not returned is here; the sum of their values. A lane that has
  /// returned without coming is a diagnosis.
  int barrier(int value, std::string_view operation, SourceLine where);

  /// Waits until every lane of `mask` that has not returned is here with the same mask; the last
  /// one, or the one whose return the others waited for, finishes the operation. A lane that has
  /// returned without coming is a diagnosis; so is one that waits here for a lane that waits for it
  /// elsewhere.
  void collective(std::uint32_t mask, std::string_view operation, SourceLine where,
                  const void* given, void* taken, Finish finish);

  /// The same without exchange, ordering the memory accesses of the warp's lanes.
  void warp_barrier(std::uint32_t mask, SourceLine where);

  /// The running lane waits until another one, or a tensor copy, wakes it.
  void suspend(std::string_view operation, SourceLine where);
  void wake(std::uint32_t lane) override;

  /// Adds a diagnosis; the kernel goes on.
  void report(Fault fault, std::string text, SourceLine where);
  /// The same, once for each fault at each known line.
  void report_once(const Finding& finding, SourceLine where) override;
  /// The same for an access of the code before `return_address`, once for each.
  void report_at(Fault fault, std::string text, const void* return_address);
  /// Adds one and gives the block up.
  [[noreturn]] void stop(Fault fault, std::string text, SourceLine where) override;

  std::uint32_t lane_number() const override { return running_->number; }
  void read_row(int tensor, const void* from, void* to, std::size_t bytes,
                SourceLine where) override {
    global_read_row(tensor, from, to, bytes, where);
  }
  void write_row(int tensor, void* to, const void* from, std::size_t bytes,
                 SourceLine where) override {
    global_write_row(tensor, to, from, bytes, where);
  }
  const std::string& tensor_name(int tensor) const override {
    return global_->ranges()[static_cast<std::size_t>(tensor)].name;
  }

 private:
  struct Group {  // lanes that wait for one another in a collective
    std::uint32_t mask = 0, arrived = 0;
    std::string_view operation;
    SourceLine where;
    Finish finish = nullptr;
  };
  struct Warp {
    std::uint32_t lanes = 0, live = 0, runnable = 0;
    std::vector<Group> groups;  // of different masks, which may overlap
  };

  [[noreturn]] static void refuse_outside();
  static void lane_entry();
  void prepare(const Emulation& emulation, Index3 grid, Index3 block, Index3 index,
               std::int64_t dynamic_shared_bytes);
  void make_lanes();
  void unwind();
  void leave_warp(const Lane& lane);
  [[noreturn]] void end_lane();
  Lane* next_lane();
  std::uint32_t choose(std::uint32_t candidates);
  Fiber& take_up(Lane& lane);  // now the running one; its fiber, begun if it was not
  void wait();                 // the running lane is not runnable: another goes on
  bool is_complete(const Warp& warp, const Group& group) const;
  void complete(std::uint32_t warp, std::size_t group);
  void require_together(const Warp& warp, std::uint32_t mask, std::string_view operation,
                        SourceLine where);
  void report_returned(std::uint32_t lane, std::string_view operation, SourceLine where);
  void report_returned_before_barrier();
  void release_barrier();
  void give_up(Fault fault, std::string text, SourceLine where);
  void give_up_deadlocked(SourceLine where);
  std::string waiting_lanes() const;

  Fiber thread_;
  static constinit inline thread_local Block* current_ = nullptr;

  std::unique_ptr<FiberStacks> stacks_;
  std::vector<Lane> lanes_;  // more than `count_` after a larger block
  std::vector<Warp> warps_;
  std::uint32_t count_ = 0, live_ = 0;
  std::uint32_t runnable_warps_ = 0;
  Lane* running_ = nullptr;

  std::uint32_t arrived_ = 0;  // at the barrier of the block
  std::string_view barrier_operation_;
  SourceLine barrier_where_;
  int barrier_sum_ = 0, barrier_result_ = 0;

  Emulation emulation_;
  std::uint64_t random_ = 0;
  Index3 grid_, size_, index_;
  Warpgroups warpgroups_;
  const GlobalMemory* global_ = nullptr;
  GlobalRaces* races_ = nullptr;  // none without checks
  std::vector<GlobalTraffic> traffic_;
  const std::function<void()>* kernel_ = nullptr;
  std::vector<Diagnosis>* found_ = nullptr;
  std::vector<const void*> reported_;  // return addresses
  bool stopped_ = false;
  std::uint64_t switches_ = 0;
};

}  // namespace attest::simt
