#pragma once

#include <cstddef>

/// Stackful coroutines of one thread: each lane of an emulated block is one.
namespace attest::simt {

/// The stacks of the lanes of one block, in one mapping.
///
/// The page below each is closed, so that an overflow ends the program instead of changing another
/// lane. Every closed page takes two of the mappings that a process may have (65530 by default), so
/// when the stacks of all blocks are more than 16384, only every 32nd has one.
/// [gpu/simt/fiber/fiber_test "stacks of many blocks"]
class FiberStacks {
 public:
  static constexpr std::size_t kStackBytes = std::size_t{256} << 10;

  /// Throws InternalError when no memory can be mapped.
  explicit FiberStacks(std::size_t count);
  ~FiberStacks();
  FiberStacks(const FiberStacks&) = delete;
  FiberStacks& operator=(const FiberStacks&) = delete;

  /// Returns the lowest address of the k-th stack. Stacks begin at several places of a page: at
  /// one, those of a warp would evict each other from the few cache lines that such a place may
  /// have.
  void* lowest(std::size_t k) const;

 private:
  static std::size_t stride();

  std::size_t count_ = 0, closed_ = 0;
  void* mapped_ = nullptr;
};

/// A stack with a point of execution. A fiber runs only on the thread that switches to it first.
///
/// Cost: one switch saves the registers that a call preserves (x86-64, aarch64; elsewhere
///       ucontext, about ten times slower).  [gpu/simt/fiber/fiber_test]
class Fiber {
 public:
  /// Begins here when first switched to. It never returns: it finishes.
  using Entry = void (*)();

  /// The thread as it runs now, to switch back to.
  Fiber() = default;
  /// On a stack of FiberStacks::kStackBytes, which outlives it. Restart before the first change.
  explicit Fiber(void* lowest) : stack_(lowest) {}
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Back to the beginning of `entry`, whatever it was doing: no destructor runs.
  void restart(Entry entry);

  /// Leaves `from`, which must be running, and goes on where `to` was left.
  static void change(Fiber& from, Fiber& to);
  /// The same for the last time: `from` may only be restarted.
  [[noreturn]] static void finish(Fiber& from, Fiber& to);

 private:
  struct Context;

  static void begin();  // on the new stack, before the entry
  static void change(Fiber& from, Fiber& to, void** shadow);
  void place(void (*code)());

  Entry entry_ = nullptr;
  void* stack_ = nullptr;    // lowest byte; null for the thread itself
  void* pointer_ = nullptr;  // of the stack where the fiber was left, or its Context
  void* shadow_ = nullptr;   // what a sanitizer keeps of it
};

}  // namespace attest::simt
