#pragma once

/// ATTEST_VECTOR_CLONES before a function compiles it for several instruction sets; the processor's
/// is chosen when the program is loaded. Helpers it calls must be ATTEST_INLINE_CLONE, or they stay
/// in the plain instruction set. Without fused or reassociated operations all clones give the same
/// bits.
///
/// The resolvers run before a sanitizer is ready, so sanitized builds have one version only; so has
/// clang, whose version 14 calls the first one, on any processor, where a declaration came before.
#if !defined(__x86_64__) || defined(__clang__) || defined(__SANITIZE_ADDRESS__) || \
    defined(__SANITIZE_THREAD__)
#define ATTEST_ONE_CLONE
#endif

#ifdef ATTEST_ONE_CLONE
#define ATTEST_VECTOR_CLONES
#undef ATTEST_ONE_CLONE
#else
#define ATTEST_VECTOR_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#endif
#define ATTEST_INLINE_CLONE inline __attribute__((always_inline))
