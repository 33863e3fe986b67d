#pragma once

#include <stddef.h>
#include <stdint.h>

/// Times kernels beside peers that another program brings, as a library that Python loads
/// (ci/bench-cpu): each peer is verified as a kernel is, then all are timed in one process,
/// shuffled and paired. Texts are UTF-8.
#ifdef __cplusplus
extern "C" {
#endif

/// One call of a peer: memory of the tensors, packed in bshd (LSE: batch, heads, queries), and
/// their sizes. O and LSE are written in forward and read in backward; dO .. dV are null in
/// forward.
struct attest_peer_call {
  void *Q, *K, *V, *O, *LSE, *dO, *dQ, *dK, *dV;
  int64_t batch, heads_q, heads_kv, seqlen_q, seqlen_k, head_dim_qk, head_dim_v;
  int32_t dtype;  // attest_dtype
  int32_t causal, threads, backward;
};

/// Adds a peer under a name. `call` returns 0 when it has written every result. `directions` and
/// `dtypes` as in attest_description; `has_lse`: forward writes LSE, which it must for a backward;
/// `narrow_exp_ulps`: how far its exp is off in bf16 and f16, in ulp of f32, 0: as in float32.
/// Returns 0 where the name is taken.
int attest_bench_add_peer(const char *name, uint32_t directions, uint32_t dtypes, int has_lse,
                          float narrow_exp_ulps, int (*call)(const struct attest_peer_call *));

/// Returns the names of the peers that are in the library, with blanks between them: the flash
/// schedule over the products of the libraries that it was built with.
const char *attest_bench_peers(void);

/// Verifies kernels and peers, named with blanks between them, on a smaller problem, and times
/// those that pass on the other. Returns JSON: "times" with the seconds of every round by name,
/// "peak_flops" of one thread in operations a second, "read_bandwidth" of all threads in bytes a
/// second, both of every round; "refused" with the reason by name; or "error". The text is the next
/// call's.
const char *attest_bench_run(const char *names, const char *problem, const char *smaller,
                             int backward, int32_t threads, int32_t rounds, uint64_t seed);

#ifdef __cplusplus
}
#endif
