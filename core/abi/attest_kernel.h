/* The one interface between Attest and an attention kernel. Plain C99, no other header needed.
 *
 * A kernel is a constant `attest_kernel`: a description and a few functions. Built-in kernels and
 * plugins are the same thing. A shared library exports
 *
 *     const attest_kernel *attest_get_kernel(uint32_t index);   -- NULL past the last one
 *
 * Rules for every call:
 *  - Shapes of Q, O, dO, dQ are (batch, seqlen_q, num_heads_q, head_dim), of K, V, dK, dV
 *    (batch, seqlen_k, num_heads_kv, head_dim), of LSE and dLSE (batch, num_heads_q, seqlen_q).
 *    Strides are in elements, one per axis, and may be anything the description claims.
 *  - With packed sequences (cu_seqlens_q != NULL) the batch axis of the tensors has extent 1 and
 *    the sequence axis runs over all sequences: sequence b owns rows cu_seqlens[b] ..
 *    cu_seqlens[b+1]-1. `attest_problem.batch` then counts the sequences.
 *  - Outputs belong to the caller and are undefined on entry; every element must be written.
 *  - Inputs must not be written: tensors and their shapes and strides, the problem, its masks,
 *    lengths and slopes. The workspace is undefined on entry.
 *  - A kernel that does not support a problem returns ATTEST_UNSUPPORTED before writing anything;
 *    Attest lists that as missing coverage, never as passed.
 *  - Structs begin with their size, so that fields can be added at the end.
 */
#ifndef ATTEST_KERNEL_H
#define ATTEST_KERNEL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ATTEST_ABI_VERSION 1u

typedef enum attest_status {
  ATTEST_OK = 0,
  ATTEST_UNSUPPORTED = 1, /* the kernel does not claim this problem */
  ATTEST_FAILED = 2       /* the kernel claims it but could not compute it */
} attest_status;

typedef enum attest_dtype {
  ATTEST_F64 = 0,
  ATTEST_F32 = 1,
  ATTEST_BF16 = 2,
  ATTEST_F16 = 3
} attest_dtype;

typedef enum attest_device { ATTEST_CPU = 1, ATTEST_CUDA = 2 } attest_device; /* DLPack's codes */

/* ---- tensors: the memory layout of DLPack's DLTensor ---- */

typedef struct attest_dl_device {
  int32_t device_type; /* attest_device */
  int32_t device_id;
} attest_dl_device;

typedef struct attest_dl_dtype {
  uint8_t code; /* 2 = IEEE float, 4 = bfloat16 */
  uint8_t bits;
  uint16_t lanes; /* 1 */
} attest_dl_dtype;

typedef struct attest_tensor {
  void *data;
  attest_dl_device device;
  int32_t ndim;
  attest_dl_dtype dtype;
  int64_t *shape;
  int64_t *strides; /* in elements, never NULL; 0 on a broadcast axis of an input */
  uint64_t byte_offset;
} attest_tensor;

/* ---- the problem ---- */

typedef enum attest_align {
  ATTEST_TOP_LEFT = 0, /* query i is aligned with key i */
  ATTEST_BOTTOM_RIGHT =
      1 /* query i is aligned with key i + seqlen_k - seqlen_q (of its sequence) */
} attest_align;

typedef struct attest_mask {
  /* Key j is visible to query i when -window_left <= j - a(i) <= window_right, a(i) the aligned
   * key. A negative width means unbounded: no mask is (-1, -1), causal is (-1, 0). */
  int64_t window_left;
  int64_t window_right;
  attest_align align;
  const int32_t *key_lengths;  /* (batch) or NULL: only keys j < key_lengths[b] exist, and
                                * bottom-right alignment counts them instead of seqlen_k */
  const int32_t *cu_seqlens_q; /* (batch + 1) or NULL: packed sequences */
  const int32_t *cu_seqlens_k;
  const uint8_t *boolean; /* (seqlen_q, seqlen_k) or NULL: 1 = visible, same for all heads */
} attest_mask;

typedef struct attest_problem {
  size_t struct_size;
  int64_t batch, num_heads_q, num_heads_kv;
  int64_t seqlen_q, seqlen_k; /* the longest, with packed sequences */
  int64_t head_dim_qk, head_dim_v;
  attest_dtype dtype;        /* of Q, K, V, O, dO, dQ, dK, dV; LSE and dLSE are f32 (f64 for f64) */
  double softmax_scale;      /* any finite value; 0 and negative ones too */
  double softcap;            /* 0 = none; else scores become softcap * tanh(score / softcap) */
  const float *alibi_slopes; /* (num_heads_q) or NULL: adds -slope * |a(i) - j| after the softcap */
  attest_mask mask;
  int32_t num_threads; /* threads the kernel may use, >= 1 */
} attest_problem;

/* ---- what a kernel says about itself ---- */

enum { /* attest_description.directions */
       ATTEST_FORWARD = 1,
       ATTEST_BACKWARD = 2, /* needs ATTEST_FORWARD's function and the feature ATTEST_LSE: bounds of
                               the gradients start from the LSE that forward stored */
       ATTEST_LOSS_GRADIENT = 4
};

enum { /* attest_description.features: what the kernel claims beyond plain dense attention */
       ATTEST_CAUSAL_TOP_LEFT = 1 << 0,
       ATTEST_CAUSAL_BOTTOM_RIGHT = 1 << 1,
       ATTEST_WINDOW = 1 << 2,
       ATTEST_KEY_LENGTHS = 1 << 3,
       ATTEST_PACKED_SEQUENCES = 1 << 4,
       ATTEST_BOOLEAN_MASK = 1 << 5,
       ATTEST_GQA = 1 << 6,        /* num_heads_q a multiple of num_heads_kv */
       ATTEST_HEAD_DIM_V = 1 << 7, /* head_dim_v != head_dim_qk */
       ATTEST_SOFTCAP = 1 << 8,
       ATTEST_ALIBI = 1 << 9,
       ATTEST_ANY_SCALE = 1 << 10,   /* zero and negative softmax_scale */
       ATTEST_ANY_STRIDES = 1 << 11, /* innermost stride other than 1 and stride 0 on inputs too */
       ATTEST_LSE = 1 << 12,         /* writes LSE when asked; ATTEST_BACKWARD requires it */
       ATTEST_DLSE = 1 << 13,        /* takes a gradient of LSE in backward */
       ATTEST_CROSS_LENGTHS = 1 << 14, /* seqlen_q != seqlen_k */
       ATTEST_EMPTY_ROWS = 1 << 15,    /* rows without a visible key, sequences of length zero */
       ATTEST_LOSS_DY = 1 << 16        /* loss gradient: writes dY too */
};

typedef enum attest_empty_row {
  ATTEST_ZERO_NEG_INF = 0, /* O = 0, LSE = -inf */
  ATTEST_ZERO_POS_INF = 1, /* O = 0, LSE = +inf */
  ATTEST_NAN = 2
} attest_empty_row;

typedef enum attest_accumulation {
  ATTEST_NEAREST = 0,    /* every addition rounded to nearest, any order, with or without fma */
  ATTEST_TRUNCATING = 1, /* an n-term chain, rounded toward zero */
  ATTEST_FUSED_BLOCKS =
      2 /* mma: blocks of `block` products aligned to `fraction_bits`, truncated */
} attest_accumulation;

/* The precision a kernel claims: the contract its error bounds are derived from. Zero means the
 * plain choice everywhere: f32 accumulation to nearest, P not cast, exp within 2 ulp. */
typedef struct attest_numerics {
  size_t struct_size;
  attest_accumulation accumulation; /* of all products */
  int32_t accumulator;              /* 0: f32 (f64 for f64 tensors); else 1 + attest_dtype */
  int32_t fused_block, fused_fraction_bits;
  int64_t summation_depth; /* longest chain of additions over keys (or rows); 0 = not declared */
  double input_roundoff;   /* u_in: operands of QK^T rounded again (tf32: 2^-11); 0 = not */
  double
      scaled_q_roundoff;  /* u_q: Q * scale rounded to this before the product; 0 = scale in f32 */
  int32_t p_cast;         /* 0: P stays in the accumulator's type; else 1 + attest_dtype */
  int32_t p_normalized;   /* 1: P is divided by its sum before the cast */
  int32_t sum_after_cast; /* 1: the row sum adds the cast P */
  int32_t flushes_p;      /* 1: subnormal cast P may become zero */
  double exp_ulps;        /* largest error of exp in ulp; 0 is read as 2 */
  int32_t exp_zero_not_one; /* 1: exp(0) may differ from 1 */
  /* Keys split and partial results merged by weights made from their LSE: at most so many merges
   * one after another (1: all at once). 0: none; up to eight splits merged by maxima and sums are
   * free. */
  int32_t lse_splits;
  int32_t gqa_partial;      /* 0: dK, dV of a group summed in f32; else 1 + attest_dtype */
  int32_t dq_accumulator;   /* 0: as `accumulator`; else 1 + attest_dtype */
  int32_t lse_base_two;     /* 1: LSE is log2 of the sum */
  int32_t nondeterministic; /* 1: two equal calls may differ in bits */
} attest_numerics;

typedef struct attest_description {
  size_t struct_size;
  const char *name;    /* unique, like "cpu/flash2" */
  const char *summary; /* one line for people */
  attest_device device;
  uint32_t directions; /* ATTEST_FORWARD | ... */
  uint32_t dtypes;     /* 1 << ATTEST_F32 | ... */
  uint32_t features;
  int64_t max_head_dim;      /* 0 = any */
  int64_t head_dim_multiple; /* 0 = any */
  attest_empty_row empty_row;
  attest_numerics numerics;
  const char *schedule; /* NULL, or the schedule whose words are counted, like "flash2:bq=64,bk=32";
                         * tiles left open are those chosen for fast_memory_bytes */
  int64_t fast_memory_bytes; /* the fast memory the schedule is blocked for; 0 = not declared */
} attest_description;

/* ---- the calls ---- */

typedef struct attest_forward_args {
  size_t struct_size;
  const attest_problem *problem;
  const attest_tensor *Q, *K, *V;
  const attest_tensor *O;
  const attest_tensor *LSE; /* NULL when not asked for */
  void *workspace;
  size_t workspace_bytes;
  void *stream;
} attest_forward_args;

typedef struct attest_backward_args {
  size_t struct_size;
  const attest_problem *problem;
  const attest_tensor *Q, *K, *V;
  const attest_tensor *O, *LSE, *dO; /* O and LSE as this kernel's forward stored them */
  const attest_tensor *dLSE;         /* NULL when there is none */
  const attest_tensor *dQ, *dK, *dV;
  void *workspace;
  size_t workspace_bytes;
  void *stream;
} attest_backward_args;

/* L(X, Y) = 1/2 |D(X)^-1 exp(A1 X A2^T) A3 Y - E|^2 (Li et al. 2024): A1, A2, A3, E are
 * (seqlen, head_dim), X, Y, dX, dY are (head_dim, head_dim). */
typedef struct attest_loss_args {
  size_t struct_size;
  const attest_problem *problem; /* batch = heads = 1, seqlen_q = seqlen_k, head_dim_v = head_dim */
  const attest_tensor *A1, *A2, *A3, *E, *X, *Y;
  const attest_tensor *dX, *dY; /* dY is NULL for a kernel that does not claim ATTEST_LOSS_DY */
  void *workspace;
  size_t workspace_bytes;
  void *stream;
} attest_loss_args;

typedef struct attest_kernel {
  size_t struct_size;
  uint32_t abi_version;
  attest_description description;
  void *self; /* the kernel's own, handed back in every call */
  /* Bytes of workspace for one call in one direction; NULL = none needed. */
  size_t (*workspace_bytes)(const void *self, const attest_problem *problem, uint32_t direction);
  attest_status (*forward)(const void *self, const attest_forward_args *args);
  attest_status (*backward)(const void *self, const attest_backward_args *args);
  attest_status (*loss_gradient)(const void *self, const attest_loss_args *args);
} attest_kernel;

#ifdef __cplusplus
}
#endif
#endif /* ATTEST_KERNEL_H */
