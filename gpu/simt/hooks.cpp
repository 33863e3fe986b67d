// Hooks that the compiler calls for each memory access of a kernel compiled with -fsanitize=thread.
// The runtime of ThreadSanitizer is not linked: lanes are no threads, and their order is known
// here.
//
// Seen: loads and stores of the kernel's own code. Not seen: what a call of memcpy moves; with
// clang 14, constant places of a lane's own array.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "gpu/simt/block.hpp"

namespace attest::simt {
namespace {

enum class Alignment : std::uint8_t { natural, any };

std::optional<Finding> examine(Block& block, const void* pointer, std::size_t bytes,
                               SharedMemory::Access how, Alignment alignment) {
  const std::uint32_t lane = block.lane().number;
  const auto verb = [&] {
    return "lane " + std::to_string(lane) +
           (how == SharedMemory::Access::read ? " reads " : " writes ");
  };
  if (block.is_own(pointer)) return block.warpgroups().touch(lane, pointer, bytes);
  if (block.shared().contains(pointer)) {
    if (auto finding = block.shared().check(pointer, bytes, how, lane)) return finding;
    if (alignment == Alignment::natural && reinterpret_cast<std::uintptr_t>(pointer) % bytes != 0) {
      return Finding{Fault::misaligned, verb() + std::to_string(bytes) +
                                            " bytes of shared memory at no multiple of that"};
    }
  } else if (const int tensor = block.global().find(pointer); tensor >= 0) {
    return Finding{Fault::uncounted,
                   verb() + "'" + block.global().ranges()[static_cast<std::size_t>(tensor)].name +
                       "' past the traffic policy"};
  }
  return std::nullopt;
}

[[gnu::noinline]] void look_at(Block& block, const void* pointer, std::size_t bytes,
                               SharedMemory::Access how, Alignment alignment, const void* caller) {
  // Functions called here may be copies with hooks: the linker keeps one of each inline function.
  thread_local bool inside = false;
  if (inside) return;
  inside = true;
  if (auto finding = examine(block, pointer, bytes, how, alignment)) {
    block.report_at(finding->fault, std::move(finding->text), caller);
  }
  inside = false;
}

// Calls nothing for most accesses: those of a lane's own stack.
void accessed(const void* pointer, std::size_t bytes, SharedMemory::Access how, Alignment alignment,
              const void* caller) {
  Block* const block = Block::current();
  if (block == nullptr) return;
  if (block->is_own(pointer) && !block->warpgroups().used()) return;
  look_at(*block, pointer, bytes, how, alignment, caller);
}

}  // namespace
}  // namespace attest::simt

namespace {
using Access = attest::simt::SharedMemory::Access;
using attest::simt::accessed;
using attest::simt::Alignment;
}  // namespace

// The names are the compiler's. One macro for the widths: a symbol cannot be a template's.
// NOLINTBEGIN(bugprone-reserved-identifier,bugprone-macro-parentheses,readability-identifier-naming,cppcoreguidelines-macro-usage)
#define ATTEST_CALLER __builtin_return_address(0)
#define ATTEST_PLAIN_HOOKS(bytes)                                         \
  void __tsan_read##bytes(void* p) {                                      \
    accessed(p, bytes, Access::read, Alignment::natural, ATTEST_CALLER);  \
  }                                                                       \
  void __tsan_write##bytes(void* p) {                                     \
    accessed(p, bytes, Access::write, Alignment::natural, ATTEST_CALLER); \
  }                                                                       \
  void __tsan_unaligned_read##bytes(void* p) {                            \
    accessed(p, bytes, Access::read, Alignment::any, ATTEST_CALLER);      \
  }                                                                       \
  void __tsan_unaligned_write##bytes(void* p) {                           \
    accessed(p, bytes, Access::write, Alignment::any, ATTEST_CALLER);     \
  }
// `type` is the word that the hook carries the operation out on; orders become the strictest.
#define ATTEST_ATOMIC_HOOKS(bits, type)                                                           \
  type __tsan_atomic##bits##_load(const volatile type* p, int) {                                  \
    accessed(const_cast<const type*>(p), sizeof(type), Access::atomic, Alignment::natural,        \
             ATTEST_CALLER);                                                                      \
    return __atomic_load_n(p, __ATOMIC_SEQ_CST);                                                  \
  }                                                                                               \
  void __tsan_atomic##bits##_store(volatile type* p, type value, int) {                           \
    accessed(const_cast<const type*>(p), sizeof(type), Access::exchange, Alignment::natural,      \
             ATTEST_CALLER);                                                                      \
    __atomic_store_n(p, value, __ATOMIC_SEQ_CST);                                                 \
  }                                                                                               \
  type __tsan_atomic##bits##_exchange(volatile type* p, type value, int) {                        \
    accessed(const_cast<const type*>(p), sizeof(type), Access::exchange, Alignment::natural,      \
             ATTEST_CALLER);                                                                      \
    return __atomic_exchange_n(p, value, __ATOMIC_SEQ_CST);                                       \
  }                                                                                               \
  type __tsan_atomic##bits##_fetch_add(volatile type* p, type value, int) {                       \
    accessed(const_cast<const type*>(p), sizeof(type), Access::atomic, Alignment::natural,        \
             ATTEST_CALLER);                                                                      \
    return __atomic_fetch_add(p, value, __ATOMIC_SEQ_CST);                                        \
  }                                                                                               \
  int __tsan_atomic##bits##_compare_exchange_strong(volatile type* p, type* expected, type value, \
                                                    int, int) {                                   \
    accessed(const_cast<const type*>(p), sizeof(type), Access::atomic, Alignment::natural,        \
             ATTEST_CALLER);                                                                      \
    return __atomic_compare_exchange_n(p, expected, value, false, __ATOMIC_SEQ_CST,               \
                                       __ATOMIC_SEQ_CST)                                          \
               ? 1                                                                                \
               : 0;                                                                               \
  }                                                                                               \
  type __tsan_atomic##bits##_compare_exchange_val(volatile type* p, type expected, type value,    \
                                                  int first, int second) {                        \
    __tsan_atomic##bits##_compare_exchange_strong(p, &expected, value, first, second);            \
    return expected;                                                                              \
  }                                                                                               \
  int __tsan_atomic##bits##_compare_exchange_weak(volatile type* p, type* expected, type value,   \
                                                  int first, int second) {                        \
    return __tsan_atomic##bits##_compare_exchange_strong(p, expected, value, first, second);      \
  }

extern "C" {
ATTEST_PLAIN_HOOKS(1)
ATTEST_PLAIN_HOOKS(2)
ATTEST_PLAIN_HOOKS(4)
ATTEST_PLAIN_HOOKS(8)
ATTEST_PLAIN_HOOKS(16)
ATTEST_ATOMIC_HOOKS(8, std::uint8_t)
ATTEST_ATOMIC_HOOKS(16, std::uint16_t)
ATTEST_ATOMIC_HOOKS(32, std::uint32_t)
ATTEST_ATOMIC_HOOKS(64, std::uint64_t)

void __tsan_read_range(void* p, std::size_t bytes) {
  accessed(p, bytes, Access::read, Alignment::any, ATTEST_CALLER);
}
void __tsan_write_range(void* p, std::size_t bytes) {
  accessed(p, bytes, Access::write, Alignment::any, ATTEST_CALLER);
}
void __tsan_init() {}
void __tsan_vptr_read(void*) {}
void __tsan_vptr_update(void*, void*) {}
void __tsan_atomic_thread_fence(int) {}
void __tsan_atomic_signal_fence(int) {}
}
// NOLINTEND(bugprone-reserved-identifier,bugprone-macro-parentheses,readability-identifier-naming,cppcoreguidelines-macro-usage)
