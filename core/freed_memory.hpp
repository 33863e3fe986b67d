#pragma once

#include <climits>

// Only a header of the library says that it is the GNU C library, so this stands after one.
#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace attest {

/// Freed memory stays with the process. The bounds use matrices of megabytes for a moment; to give
/// their pages back and fault them in again took half of the time of the loss gradient's bounds on
/// two threads at 1024 x 64 (reference_bench), and half of a campaign's system time. For programs,
/// at their begin; a library must not decide this. Nothing happens without the GNU C library.
inline void keep_freed_memory() {
#if defined(__GLIBC__)
  constexpr int kLargestThreshold = 32 << 20;
  mallopt(M_MMAP_THRESHOLD, kLargestThreshold);
  mallopt(M_TRIM_THRESHOLD, INT_MAX);
#endif
}

}  // namespace attest
