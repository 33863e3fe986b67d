#pragma once

#include <cstddef>

/// Stackful coroutines of one thread: each lane of an emulated block is one.
namespace attest::simt {

/// A stack with a point of execution. A fiber runs only on the thread that switches to it first.
///
/// Cost: one switch saves the registers that a call preserves (x86-64, aarch64; elsewhere
///       ucontext, about ten times slower).  [gpu/simt/fiber_test]
class Fiber {
 public:
  /// Begins here when first switched to. It never returns: it switches away for the last time.
  using Entry = void (*)();

  /// Bytes of a stack; the page below is closed, so that an overflow ends the program instead of
  /// changing another lane.
  static constexpr std::size_t kStackBytes = std::size_t{256} << 10;

  /// The thread as it runs now, to switch back to.
  Fiber() = default;
  /// A stack of its own. Throws InternalError when no memory can be mapped.
  explicit Fiber(Entry entry);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Back to the beginning of `entry`, whatever it was doing: no destructor runs.
  void restart(Entry entry);

  /// Leaves `from`, which must be running, and goes on where `to` was left.
  static void change(Fiber& from, Fiber& to);

 private:
  struct Context;

  static void begin();  // on the new stack, before the entry
  void place(void (*code)());

  Entry entry_ = nullptr;
  void* stack_ = nullptr;    // lowest byte of what was mapped; null for the thread itself
  void* pointer_ = nullptr;  // of the stack where the fiber was left, or its Context
  void* shadow_ = nullptr;   // what a sanitizer keeps of it
};

}  // namespace attest::simt
