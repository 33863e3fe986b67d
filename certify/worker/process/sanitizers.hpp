#pragma once

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ATTEST_SHADOW_MEMORY 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define ATTEST_SHADOW_MEMORY 1
#endif
#endif

namespace attest::certify::worker {

/// True where a process can be held to a limit of private memory. The shadow memory of sanitizers
/// lies beyond every limit.
#if defined(ATTEST_SHADOW_MEMORY)
inline constexpr bool kMemoryLimits = false;
#else
inline constexpr bool kMemoryLimits = true;
#endif

}  // namespace attest::certify::worker
