#include "gpu/simt/fiber/fiber.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <exception>
#include <string>

#include "core/error.hpp"

// Sanitizers keep a record of each stack and must be told of every change.
#if defined(__SANITIZE_ADDRESS__)
#define ATTEST_ASAN_FIBERS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ATTEST_ASAN_FIBERS 1
#elif __has_feature(thread_sanitizer)
#define ATTEST_TSAN_FIBERS 1
#include <sanitizer/tsan_interface.h>
#endif
#endif
#ifdef ATTEST_ASAN_FIBERS
#include <pthread.h>
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

#if !defined(ATTEST_UCONTEXT_FIBERS) && !defined(__x86_64__) && !defined(__aarch64__)
#define ATTEST_UCONTEXT_FIBERS 1
#endif
#ifdef ATTEST_UCONTEXT_FIBERS
#include <ucontext.h>
#endif

namespace attest::simt {
#ifdef ATTEST_UCONTEXT_FIBERS

struct Fiber::Context {
  ucontext_t registers;
};

void Fiber::place(void (*code)()) {
  if (pointer_ == nullptr) pointer_ = new Context;
  ucontext_t& context = static_cast<Context*>(pointer_)->registers;
  getcontext(&context);
  context.uc_stack.ss_sp = stack_;
  context.uc_stack.ss_size = FiberStacks::kStackBytes;
  context.uc_link = nullptr;
  makecontext(&context, code, 0);
}

namespace {
void change_registers(void*& from, void* to) {
  swapcontext(static_cast<ucontext_t*>(from), static_cast<ucontext_t*>(to));
}
}  // namespace

#else

// Pushes what a call preserves, keeps the stack pointer in *from and takes up what was left at
// `to`. The rounding mode and the like stay as they are: no lane changes them.
extern "C" void attest_simt_change_stack(void** from, void* to);
#ifdef __x86_64__
asm(R"(
.text
.hidden attest_simt_change_stack
.globl attest_simt_change_stack
.type attest_simt_change_stack,@function
attest_simt_change_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size attest_simt_change_stack, .-attest_simt_change_stack
)");
constexpr std::size_t kSavedWords = 6;
#else
asm(R"(
.text
.hidden attest_simt_change_stack
.globl attest_simt_change_stack
.type attest_simt_change_stack,%function
attest_simt_change_stack:
  sub sp, sp, #160
  stp x19, x20, [sp, #0]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #0]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
.size attest_simt_change_stack, .-attest_simt_change_stack
)");
#endif

struct Fiber::Context {};

// The stack looks as if the code had been about to begin when it was left.
void Fiber::place(void (*code)()) {
  auto* top = reinterpret_cast<void**>(static_cast<char*>(stack_) + FiberStacks::kStackBytes);
#ifdef __x86_64__
  *--top = nullptr;  // where the code would return to; keeps the alignment of a call
  *--top = reinterpret_cast<void*>(code);
  for (std::size_t k = 0; k < kSavedWords; ++k) *--top = nullptr;
#else
  constexpr std::size_t kSavedWords = 20, kLink = 11;
  top -= kSavedWords;
  for (std::size_t k = 0; k < kSavedWords; ++k) top[k] = nullptr;
  top[kLink] = reinterpret_cast<void*>(code);
#endif
  pointer_ = top;
}

namespace {
void change_registers(void*& from, void* to) { attest_simt_change_stack(&from, to); }
}  // namespace

#endif

namespace {
thread_local Fiber* entered = nullptr;  // the fiber that was switched to last
}  // namespace

void Fiber::begin() {
#ifdef ATTEST_ASAN_FIBERS
  __sanitizer_finish_switch_fiber(nullptr, nullptr, nullptr);
#endif
  entered->entry_();
}

void Fiber::restart(Entry entry) {
#ifdef ATTEST_ASAN_FIBERS
  // Frames that never returned left their marks.
  ASAN_UNPOISON_MEMORY_REGION(stack_, FiberStacks::kStackBytes);
  shadow_ = nullptr;  // what was left belongs to frames that are no more
#endif
#ifdef ATTEST_TSAN_FIBERS
  // Its calls that never returned would stay on the record.
  if (shadow_ != nullptr) __tsan_destroy_fiber(shadow_);
  shadow_ = nullptr;
#endif
  entry_ = entry;
  place(begin);
}

Fiber::~Fiber() {
#ifdef ATTEST_TSAN_FIBERS
  if (stack_ != nullptr && shadow_ != nullptr) __tsan_destroy_fiber(shadow_);
#endif
#ifdef ATTEST_UCONTEXT_FIBERS
  delete static_cast<Context*>(pointer_);
#endif
}

// Where `shadow` is null, a sanitizer forgets the stack that is left.
void Fiber::change(Fiber& from, Fiber& to, [[maybe_unused]] void** shadow) {
  entered = &to;
#ifdef ATTEST_UCONTEXT_FIBERS
  if (from.pointer_ == nullptr) from.pointer_ = new Context;  // the thread itself
#endif
#ifdef ATTEST_TSAN_FIBERS
  if (from.stack_ == nullptr) from.shadow_ = __tsan_get_current_fiber();
  if (to.shadow_ == nullptr) to.shadow_ = __tsan_create_fiber(0);
  __tsan_switch_to_fiber(to.shadow_, 0);
#endif
#ifdef ATTEST_ASAN_FIBERS
  const void* bottom = to.stack_;
  std::size_t bytes = FiberStacks::kStackBytes;
  if (to.stack_ == nullptr) {  // back to the thread's own stack
    pthread_attr_t attributes;
    void* lowest = nullptr;
    pthread_getattr_np(pthread_self(), &attributes);
    pthread_attr_getstack(&attributes, &lowest, &bytes);
    pthread_attr_destroy(&attributes);
    bottom = lowest;
  }
  __sanitizer_start_switch_fiber(shadow, bottom, bytes);
  change_registers(from.pointer_, to.pointer_);
  __sanitizer_finish_switch_fiber(from.shadow_, nullptr, nullptr);
#else
  change_registers(from.pointer_, to.pointer_);
#endif
}

void Fiber::change(Fiber& from, Fiber& to) { change(from, to, &from.shadow_); }

void Fiber::finish(Fiber& from, Fiber& to) {
  change(from, to, nullptr);
  std::terminate();  // switched to without a restart
}

}  // namespace attest::simt
