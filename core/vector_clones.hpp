#pragma once

/// ATTEST_VECTOR_CLONES before a function compiles it for several instruction sets; the processor's
/// is chosen when the program is loaded. Helpers it calls must be ATTEST_INLINE_CLONE, or they stay
/// in the plain instruction set. Without fused or reassociated operations all clones give the same
/// bits.
///
/// The function lies in an unnamed namespace: clang 14 calls the first version, on any processor,
/// where a declaration in a header came before. The resolvers run before a sanitizer is ready, so
/// that sanitized builds have one version only.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ATTEST_ONE_CLONE
#elif defined(__has_feature)  // clang's way to tell
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(memory_sanitizer) || __has_feature(undefined_behavior_sanitizer)
#define ATTEST_ONE_CLONE
#endif
#endif

#if defined(__x86_64__) && !defined(ATTEST_ONE_CLONE) && __has_attribute(target_clones)
#define ATTEST_VECTOR_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define ATTEST_VECTOR_CLONES
#endif
#undef ATTEST_ONE_CLONE
#define ATTEST_INLINE_CLONE inline __attribute__((always_inline))
