/* The one interface between Attest and an attention kernel. Plain C99; no other header, and no
 * library of Attest's, is needed.
 *
 * A kernel is a constant `attest_kernel`: a description of what it claims, and functions. Kernels
 * built into Attest and kernels in shared libraries are the same thing. A shared library exports
 * one function, attest_get_kernel (at the end of this file). Build it and have it certified:
 *
 *     cc -O2 -shared -fPIC mine.c -lm -o libmine.so
 *     attest list ./libmine.so
 *     attest certify ./libmine.so
 *
 * docs/how-to/certify-your-library.md goes through an example of a screenful.
 *
 * A kernel computes, for every batch entry b and query head h, with key head
 * g = h / (num_heads_q / num_heads_kv):
 *
 *     S[i][j] = softmax_scale * sum over c of Q[b][i][h][c] * K[b][j][g][c]
 *     O[b][i][h][c] = sum over visible j of P[i][j] * V[b][j][g][c],  P = softmax of a row of S
 *     LSE[b][h][i]  = log of the sum over visible j of exp(S[i][j])
 *
 * Rules for every call:
 *  - Shapes of Q, O, dO, dQ are (batch, seqlen_q, num_heads_q, head_dim), of K, V, dK, dV
 *    (batch, seqlen_k, num_heads_kv, head_dim), of LSE and dLSE (batch, num_heads_q, seqlen_q);
 *    head_dim is head_dim_qk for Q, K, dQ, dK and head_dim_v for V, O, dO, dV. Axes are always in
 *    this order: another order in memory shows in the strides only. attest_paged_kv has K and V of
 *    other shapes.
 *  - Strides are in elements, one per axis, never negative, and may be anything the description
 *    claims. Without ATTEST_ANY_STRIDES the innermost stride is 1 and nothing overlaps, but rows
 *    may still be further apart than their length and axes may lie in another order.
 *  - The first element lies at (char *)data + byte_offset, at a multiple of 64 bytes.
 *  - With packed sequences (cu_seqlens_q != NULL) the batch axis of the tensors has extent 1 and
 *    the sequence axis runs over all sequences: sequence b owns rows cu_seqlens[b] ..
 *    cu_seqlens[b+1]-1. `attest_problem.batch` then counts the sequences.
 *  - Outputs belong to the caller and are undefined on entry (they hold NaN); every element must be
 *    written, but for rows that description.past_length leaves out. Memory between the elements
 *    of a strided tensor is not the kernel's.
 *  - Inputs must not be written, not even with the value they hold: tensors and their shapes and
 *    strides, the problem, its masks, lengths and slopes. The workspace is undefined on entry
 * (NaN).
 *  - Rows without a visible key follow description.empty_row; their gradients are zero. An extent
 *    may be 0 where ATTEST_EMPTY_ROWS is claimed.
 *  - A kernel that does not support a problem returns ATTEST_UNSUPPORTED before writing anything;
 *    Attest lists that as missing coverage, never as passed.
 *  - A call leaves its process as it was: rounding mode and floating-point environment, locale,
 *    working directory, descriptors. It does not end the process, start another, print to the
 *    standard output, or keep a pointer to the arguments or tensors of a call beyond it. Threads of
 *    its own, and memory it allocated itself, it may keep; of the rest description.may_change names
 *    what does not hold of it. Whatever a library does while it loads is its own affair.
 *  - Equal calls give equal bits, unless numerics.nondeterministic says otherwise. Calls that
 * differ in strides are not equal, unless ATTEST_LAYOUT_BITS is claimed.
 *  - Structs begin with their size. New fields are at their ends, or take the place of `reserved`
 * ones, which are zero, so that no offset changes; a library of another layout is refused. Zero
 * means the plain choice in every field.
 */
#ifndef ATTEST_KERNEL_H
#define ATTEST_KERNEL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Version 2 has sinks, paged K and V, biases, masks per batch and head, query lengths, windows with
 * both ends anywhere, K and V in one buffer, and numbers of splits. A library of version 1 is
 * loaded as it is and claims none of them. Attest refuses a library of any other version and says
 * so. */
#define ATTEST_ABI_VERSION 2u

/* Before the one function a library exports, so that it is seen even with -fvisibility=hidden. */
#if defined(__GNUC__)
#define ATTEST_EXPORT __attribute__((visibility("default")))
#else
#define ATTEST_EXPORT
#endif

/* Status that a call returns. */
typedef enum attest_status {
  ATTEST_OK = 0,          /* every element of every output is written */
  ATTEST_UNSUPPORTED = 1, /* the kernel does not claim this problem */
  ATTEST_FAILED = 2       /* the kernel claims it but could not compute it */
} attest_status;

typedef enum attest_dtype {
  ATTEST_F64 = 0,  /* IEEE binary64 */
  ATTEST_F32 = 1,  /* IEEE binary32 */
  ATTEST_BF16 = 2, /* the upper half of a binary32 */
  ATTEST_F16 = 3   /* IEEE binary16 */
} attest_dtype;

typedef enum attest_device { ATTEST_CPU = 1, ATTEST_CUDA = 2 } attest_device; /* DLPack's codes */

/* ---- tensors: the memory layout of DLPack's DLTensor ---- */

typedef struct attest_dl_device {
  int32_t device_type; /* attest_device */
  int32_t device_id;   /* which of several; 0 */
} attest_dl_device;

typedef struct attest_dl_dtype {
  uint8_t code;   /* 2 = IEEE float, 4 = bfloat16 */
  uint8_t bits;   /* of one element: 64, 32 or 16 */
  uint16_t lanes; /* 1 */
} attest_dl_dtype;

typedef struct attest_tensor {
  void *data; /* the first element lies byte_offset bytes further on */
  attest_dl_device device;
  int32_t ndim; /* 4; 3 for LSE and dLSE, 1 for dSinks, 2 in the loss gradient */
  attest_dl_dtype dtype;
  int64_t *shape;       /* extents, outermost axis first */
  int64_t *strides;     /* in elements, never NULL; 0 on a broadcast axis of an input */
  uint64_t byte_offset; /* a multiple of the element's size */
} attest_tensor;

/* ---- the problem ---- */

/* The aligned key a(i) of query i, from which windows are measured. */
typedef enum attest_align {
  ATTEST_TOP_LEFT = 0, /* query i is aligned with key i */
  ATTEST_BOTTOM_RIGHT =
      1 /* query i is aligned with key i + seqlen_k - seqlen_q (of its sequence) */
} attest_align;

/* Lists of indices, one for every line: line i has indices[offsets[i]] .. indices[offsets[i+1] -
 * 1], ascending. */
typedef struct attest_lists {
  const int64_t *offsets; /* (lines + 1), the first 0, the last the length of `indices` */
  const int32_t *indices; /* never NULL, even with none */
} attest_lists;

/* Sparsity patterns: which of seqlen_q x seqlen_k pairs are visible, the same for all heads (and
 * packed sequences, as the boolean mask), compressed. Both directions of a list say the same. */

/* Whole blocks: query i sees key j when the block (i / block_q, j / block_k) is listed. Any sizes;
 * the last blocks may reach beyond seqlen_q and seqlen_k. */
typedef struct attest_block_mask {
  size_t struct_size;
  int64_t block_q, block_k; /* queries and keys of a block, >= 1 */
  attest_lists by_query;    /* ceil(seqlen_q / block_q) lines: key blocks of a query block */
  attest_lists by_key;      /* ceil(seqlen_k / block_k) lines: query blocks of a key block */
} attest_block_mask;

/* Single pairs, in compressed sparse rows and columns. */
typedef struct attest_csr_mask {
  size_t struct_size;
  attest_lists by_query; /* seqlen_q lines: keys of a query */
  attest_lists by_key;   /* seqlen_k lines: queries of a key */
} attest_csr_mask;

/* N:M along keys: of keys g * group .. g * group + group - 1 a query sees `kept`. */
typedef struct attest_nm_mask {
  size_t struct_size;
  int64_t kept, group;    /* 1 <= kept <= group <= 256 */
  const uint8_t *offsets; /* (seqlen_q, ceil(seqlen_k / group), kept): query i sees the keys g *
                           * group + offsets[i][g][..] below seqlen_k; ascending; never NULL */
} attest_nm_mask;

/* A boolean mask of each batch entry and query head: key j is visible to query i of head h where
 * visible[b * strides[0] + h * strides[1] + i * strides[2] + j * strides[3]] is 1, and not where it
 * is 0. A stride is 0 along each axis that the mask does not depend on, else any distance at which
 * no two elements meet. With packed sequences entry b is that of sequence b, whose queries and keys
 * are counted from its first one. */
typedef struct attest_head_mask {
  size_t struct_size;
  const uint8_t *visible; /* never NULL */
  int64_t strides[4];     /* of batch, query head, query and key, in bytes, >= 0 */
} attest_head_mask;

/* Which ends a window lacks. */
typedef struct attest_window_ends {
  size_t struct_size;
  int32_t left_unbounded, right_unbounded; /* 1: that end is unbounded, whatever its width says */
} attest_window_ends;

/* Which keys a query sees. The conditions given hold together. */
typedef struct attest_mask {
  /* Key j is visible to query i when -window_left <= j - a(i) <= window_right, a(i) the aligned
   * key. A negative width means unbounded: no mask is (-1, -1), causal is (-1, 0). With
   * window_ends it means no such thing. */
  int64_t window_left;
  int64_t window_right;
  attest_align align;
  const int32_t *key_lengths;  /* (batch) or NULL: only keys j < key_lengths[b] exist, and
                                * bottom-right alignment counts them instead of seqlen_k */
  const int32_t *cu_seqlens_q; /* (batch + 1) or NULL: packed sequences */
  const int32_t *cu_seqlens_k; /* (batch + 1), given exactly when cu_seqlens_q is */
  const uint8_t *boolean;      /* (seqlen_q, seqlen_k) or NULL: 1 = visible, same for all heads */
  /* At most one of these and `boolean` is given. A sparsity pattern comes in the first of these
   * forms that it has and the kernel claims: blocks (of a block pattern) and N:M (of an N:M
   * pattern), CSR (of any), boolean (of any). */
  const attest_block_mask *blocks;  /* or NULL; ATTEST_BLOCK_MASK */
  const attest_csr_mask *csr;       /* or NULL; ATTEST_CSR_MASK */
  const attest_nm_mask *nm;         /* or NULL; ATTEST_NM_MASK */
  const attest_head_mask *per_head; /* or NULL; ATTEST_HEAD_MASK */
  /* (batch) or NULL: only queries i < query_lengths[b] exist, and bottom-right alignment counts
   * them instead of seqlen_q. Rows past them have no visible key and no sink: O, LSE and gradients
   * of dQ are those of empty_row, or not written (description.past_length), and K, V and the sinks
   * gain nothing from them. */
  const int32_t *query_lengths;
  /* Not NULL to a kernel of ATTEST_OFFSET_WINDOW, where there is a window: it alone says which ends
   * are unbounded. Widths are then any numbers: (3, -1) leaves keys a(i) - 3 .. a(i) - 1, and a
   * window whose ends pass each other no key. */
  const attest_window_ends *window_ends;
  const void *reserved[2]; /* NULL; other kinds of masks will take their place */
} attest_mask;

/* Pages of K and V, as caches of serving programs have them. K and V are then (pages, page_size,
 * num_heads_kv, head_dim), and the keys of a batch entry lie in the pages that its row of the block
 * table names: key j in slot j % page_size of page block_table[b * max_pages + j / page_size]. How
 * many keys there are, mask.key_lengths says, mask.cu_seqlens_k for packed sequences (of lengths
 * alone: no key lies where it says), else seqlen_k. Slots past them, and pages that no key lies in,
 * hold NaN. Entries of the table past the last key's name some page, which is not the entry's. */
typedef struct attest_paged_kv {
  size_t struct_size;
  int64_t page_size;          /* slots of a page, >= 1; any number */
  int64_t pages;              /* of K, and of V */
  int64_t max_pages;          /* entries of a row of the block table, >= 1 */
  const int32_t *block_table; /* (batch, max_pages), each below `pages` */
} attest_paged_kv;

typedef struct attest_problem {
  size_t struct_size;
  int64_t batch, num_heads_q, num_heads_kv; /* num_heads_q is a multiple of num_heads_kv */
  int64_t seqlen_q, seqlen_k;               /* the longest, with packed sequences */
  int64_t head_dim_qk, head_dim_v;          /* of Q and K, and of V and O */
  attest_dtype dtype;        /* of Q, K, V, O, dO, dQ, dK, dV; LSE and dLSE are f32 (f64 for f64) */
  double softmax_scale;      /* any finite value; 0 and negative ones too */
  double softcap;            /* 0 = none; else scores become softcap * tanh(score / softcap) */
  const float *alibi_slopes; /* (num_heads_q) or NULL: adds -slope * |a(i) - j| after the softcap */
  attest_mask mask;
  int32_t num_threads; /* threads the kernel may use, >= 1 */
  /* (num_heads_q) or NULL: one more key of each row, of score sinks[h], which scale, softcap and
   * ALiBi do not touch, and value 0. The row sum gains exp(sinks[h]), LSE has it. A row without
   * another visible key: O = 0, LSE = sinks[h]. -inf is no sink. */
  const float *sinks;
  const attest_paged_kv *paged_kv; /* or NULL: K and V as above; with it a call is forward */
  /* Parts in which a kernel may work through the keys of a row side by side: a hint that changes no
   * bit; 0 = its own choice. Only with ATTEST_SPLIT_INVARIANT. */
  int64_t num_splits;
} attest_problem;

/* ---- what a kernel says about itself ---- */

enum { /* attest_description.directions: the functions that are there */
       ATTEST_FORWARD = 1,
       ATTEST_BACKWARD = 2, /* needs ATTEST_FORWARD's function; bounds of the gradients start from
                             * the O and, with ATTEST_LSE, the LSE that forward stored */
       ATTEST_LOSS_GRADIENT = 4 /* see attest_loss_args */
};

enum { /* attest_description.features: what the kernel claims beyond plain dense attention */
       ATTEST_CAUSAL_TOP_LEFT = 1 << 0,     /* window (-1, 0), ATTEST_TOP_LEFT */
       ATTEST_CAUSAL_BOTTOM_RIGHT = 1 << 1, /* window (-1, 0), ATTEST_BOTTOM_RIGHT */
       ATTEST_WINDOW = 1 << 2,              /* any other window, with either alignment */
       ATTEST_KEY_LENGTHS = 1 << 3,         /* mask.key_lengths */
       ATTEST_PACKED_SEQUENCES = 1 << 4,    /* mask.cu_seqlens_q and cu_seqlens_k */
       ATTEST_BOOLEAN_MASK = 1 << 5,        /* mask.boolean */
       ATTEST_GQA = 1 << 6,                 /* num_heads_q a multiple of num_heads_kv */
       ATTEST_HEAD_DIM_V = 1 << 7,          /* head_dim_v != head_dim_qk */
       ATTEST_SOFTCAP = 1 << 8,             /* problem.softcap */
       ATTEST_ALIBI = 1 << 9,               /* problem.alibi_slopes */
       ATTEST_ANY_SCALE = 1 << 10,          /* zero and negative softmax_scale */
       ATTEST_ANY_STRIDES = 1 << 11, /* innermost stride other than 1 and stride 0 on inputs too */
       ATTEST_LSE = 1 << 12,         /* writes LSE when asked; narrows bounds of gradients */
       ATTEST_DLSE = 1 << 13,        /* takes a gradient of LSE in backward */
       ATTEST_CROSS_LENGTHS = 1 << 14, /* seqlen_q != seqlen_k, of any packed sequence too */
       ATTEST_EMPTY_ROWS = 1 << 15,    /* rows without a visible key, sequences of length zero */
       ATTEST_LOSS_DY = 1 << 16,       /* loss gradient: writes dY too */
       ATTEST_BLOCK_MASK = 1 << 17,    /* mask.blocks */
       ATTEST_CSR_MASK = 1 << 18,      /* mask.csr */
       ATTEST_NM_MASK = 1 << 19,       /* mask.nm */
       /* Layout and strides do not change a bit of any output. Without it they may, as in a kernel
        * that chooses vectors where rows are contiguous: within the bounds. */
       ATTEST_LAYOUT_BITS = 1 << 20,
       ATTEST_SINKS = 1 << 21,     /* problem.sinks; backward writes dSinks */
       ATTEST_PAGED_KV = 1 << 22,  /* problem.paged_kv, in forward alone */
       ATTEST_BIAS = 1 << 23,      /* args.bias, of any type and broadcast; backward writes dBias */
       ATTEST_HEAD_MASK = 1 << 24, /* mask.per_head */
       ATTEST_QUERY_LENGTHS = 1 << 25, /* mask.query_lengths */
       /* With ATTEST_WINDOW: windows with both ends anywhere, mask.window_ends. */
       ATTEST_OFFSET_WINDOW = 1 << 26,
       /* K and V may lie in one buffer, as in multi-head latent attention: the narrower is the
        * first, or the last, columns of the wider, and has its strides. Last columns need not begin
        * at a multiple of 64 bytes. dK and dV stay apart, each as if the other were constant. */
       ATTEST_SHARED_KV = 1 << 27,
       /* Bits of O, LSE, dQ, dK and dV of a batch entry do not depend on the other entries: on
        * their number, values or lengths, or on its place among them. */
       ATTEST_BATCH_INVARIANT = 1 << 28,
       ATTEST_SPLIT_INVARIANT = 1 << 29, /* problem.num_splits, which changes no bit */
       /* Forward: NaN and infinities reach the rows that see them as in IEEE arithmetic, and change
        * no bit of another row. docs/theory/laws.md says which results are judged. */
       ATTEST_NONFINITE = 1 << 30
};

enum { /* attest_limits.only: what a kernel does not serve although its features have a wider word
        */
       ATTEST_ONLY_CAUSAL = 1 << 0, /* window_right is 0: a causal mask, or a window that ends at
                                     * the aligned key; other parts of a mask may come with it */
       /* Windows and causal masks aligned to the top left, or the bottom right, alone; ALiBi
        * without a window only where both alignments are one. */
       ATTEST_ONLY_TOP_LEFT = 1 << 1,
       ATTEST_ONLY_BOTTOM_RIGHT = 1 << 2,
       ATTEST_ONLY_ONE_SCALE = 1 << 3 /* attest_limits.softmax_scale alone */
};

/* The least and the largest extent that a kernel serves, and what it must be a multiple of; 0 in
 * each: any. */
typedef struct attest_extents {
  int64_t least, most, multiple;
} attest_extents;

/* The set of problems that a kernel serves, where features alone say too much. Attest asks nothing
 * outside it; a refusal inside it is a hole in the claims. Zero in every field: no limit. The loss
 * gradient has extents alone. */
typedef struct attest_limits {
  size_t struct_size;
  uint32_t only;                     /* ATTEST_ONLY_CAUSAL | ... */
  double softmax_scale;              /* with ATTEST_ONLY_ONE_SCALE; 0 = 1 / sqrt(head_dim_qk) */
  attest_extents seqlen_q, seqlen_k; /* packed: of the longest sequence */
  attest_extents head_dim; /* of both head dimensions, beside max_head_dim and head_dim_multiple */
  int64_t head_dims[8];    /* the only head dimensions, ended by a 0; none given: any */
  int64_t most_heads_q, most_batch; /* 0 = any */
} attest_limits;

enum { /* attest_description.may_change: what of its process a call may leave changed, as a language
        * runtime does that is set up by the first call */
       ATTEST_MAY_CHANGE_LOCALE = 1 << 0,
       ATTEST_MAY_CHANGE_ENVIRONMENT = 1 << 1,
       ATTEST_MAY_CHANGE_SIGNALS = 1 << 2,
       ATTEST_MAY_START_PROCESSES = 1 << 3
};

/* Values of a row without a visible key. */
typedef enum attest_empty_row {
  ATTEST_ZERO_NEG_INF = 0, /* O = 0, LSE = -inf */
  ATTEST_ZERO_POS_INF = 1, /* O = 0, LSE = +inf */
  ATTEST_NAN = 2,          /* both NaN */
  ATTEST_ZERO_ZERO = 3     /* O = 0, LSE = 0 */
} attest_empty_row;

/* Rows past mask.query_lengths: as rows without a visible key, or not written. O, LSE and dQ then
 * keep there what they hold, and backward finds that in O and LSE. */
typedef enum attest_past_length {
  ATTEST_PAST_EMPTY_ROW = 0,
  ATTEST_PAST_NOT_WRITTEN = 1
} attest_past_length;

/* How sums of products are accumulated. */
typedef enum attest_accumulation {
  ATTEST_NEAREST = 0,    /* every addition rounded to nearest, any order, with or without fma */
  ATTEST_TRUNCATING = 1, /* an n-term chain, rounded toward zero */
  ATTEST_FUSED_BLOCKS =
      2 /* mma: blocks of `block` products aligned to `fraction_bits`, truncated */
} attest_accumulation;

/* In place of 1 + attest_dtype in attest_numerics: the type of the tensors of a call, as in a
 * kernel for bf16 and f16 that casts P to the one it is given. */
enum { ATTEST_INPUT_DTYPE = -1 };

/* The precision a kernel claims: the contract its error bounds are derived from. Zero means the
 * plain choice everywhere: f32 accumulation to nearest, P not cast, exp within 2 ulp. */
typedef struct attest_numerics {
  size_t struct_size;
  attest_accumulation accumulation; /* of all products */
  int32_t accumulator;              /* 0: f32 (f64 for f64 tensors); else 1 + attest_dtype or
                                     * ATTEST_INPUT_DTYPE, as in the other fields that name a type.
                                     * bf16 and f16: P and every product and addition of a sum of
                                     * products are rounded to it, exp, the row sum and what else is
                                     * no such sum stays in f32 */
  int32_t fused_block, fused_fraction_bits; /* of ATTEST_FUSED_BLOCKS; else 0 */
  int64_t summation_depth; /* longest chain of additions over keys (or rows); 0 = not declared */
  double input_roundoff;   /* u_in: operands of QK^T rounded again (tf32: 2^-11); 0 = not */
  double
      scaled_q_roundoff;  /* u_q: Q * scale rounded to this before the product; 0 = scale in f32 */
  int32_t p_cast;         /* 0: P stays in the accumulator's type; else 1 + attest_dtype */
  int32_t p_normalized;   /* 1: P is divided by its sum before the cast */
  int32_t sum_after_cast; /* 1: the row sum adds the cast P */
  int32_t flushes_p;      /* 1: subnormal cast P may become zero */
  double exp_ulps;        /* largest error of exp in ulp; 0 is read as 2 */
  /* 1: exp(0) may differ from 1, or weights are exp(S - LSE), so that none is exp(0). */
  int32_t exp_zero_not_one;
  /* Keys split and partial results merged by weights made from their LSE: at most so many merges
   * one after another (1: all at once). 0: none; up to eight splits merged by maxima and sums are
   * free. */
  int32_t lse_splits;
  int32_t gqa_partial;      /* 0: dK, dV of a group summed in f32; else 1 + attest_dtype */
  int32_t dq_accumulator;   /* 0: as `accumulator`; else 1 + attest_dtype */
  int32_t lse_base_two;     /* 1: LSE is log2 of the sum; dLSE is of the natural logarithm always */
  int32_t nondeterministic; /* 1: two equal calls may differ in bits */
  int32_t
      lse_split_keys;   /* with lse_splits: at least so many keys enter at each merge but the last,
                         * so that n keys take ceil(n / lse_split_keys) at most; 0 = not said */
  int32_t delta_from_p; /* 1: backward forms delta as the row sum of P * dP, P not cast and dP as
                         * `dp_cast` says, instead of dO * O */
  /* Sums of dK and dV over queries, rounded to a type each time a tile of queries is added. 0: as
   * `accumulator`; else 1 + attest_dtype. */
  int32_t dkv_accumulator;
  /* dK, dV of a group summed head by head, each sum rounded to a type. 0: as gqa_partial says; else
   * 1 + attest_dtype. */
  int32_t gqa_accumulator;
  float exp_ulps_of[4];    /* exp_ulps for tensors of one attest_dtype, in ulp of the type that exp
                            * is computed in, f32: relative 5e-5 is 839; 0 = exp_ulps */
  double operand_roundoff; /* operands of every product rounded again, those of QK^T too: by this
                            * much or less, in any way (tf32: 2^-11, 2^-10 where it is cut off), and
                            * those below the smallest normal number may vanish; 0 = not */
  /* 1: arithmetic flushes subnormals (FTZ, DAZ): operands below the smallest normal number of the
   * type of the arithmetic, 2^-126 in f32 and with tensors of bf16 and f16, may be read as zero,
   * and results below it may become zero, those that are stored in it too. f16 is stored with its
   * subnormals. */
  int32_t flushes_subnormals;
  int32_t dp_cast; /* dP = dO V^T is rounded to a type before delta is subtracted, and before P * dP
                    * is summed with delta_from_p. 0: as `accumulator`; else 1 + attest_dtype */
  int32_t score_cast; /* Q K^T is rounded to a type, and again by each of scale, softcap, bias and
                       * ALiBi; in backward dS, and again by their derivatives. 0: as `accumulator`;
                       * else 1 + attest_dtype */
  int32_t reserved_bits; /* 0 */
  uint64_t reserved[2];  /* 0 */
} attest_numerics;

/* A kernel is held to all of it: what is claimed is exercised, what is not claimed is listed as not
 * covered. */
typedef struct attest_description {
  size_t struct_size;
  const char *name;     /* unique in its library, like "mine/flash": no blanks, quotes or colons */
  const char *summary;  /* one line for people */
  attest_device device; /* where the tensors lie; ATTEST_CUDA: see the end of this file */
  uint32_t directions;  /* ATTEST_FORWARD | ... */
  uint32_t dtypes;      /* 1 << ATTEST_F32 | ... */
  uint32_t features;    /* ATTEST_GQA | ... */
  int64_t max_head_dim; /* 0 = any */
  int64_t head_dim_multiple; /* 0 = any */
  attest_empty_row empty_row;
  attest_numerics numerics;
  const char *schedule; /* NULL, or the schedule whose words are counted, like "flash2:bq=64,bk=32",
                         * of a direction that is claimed: of forward, where that is claimed and
                         * the backward schedule has its own field; tiles left open are those
                         * chosen for fast_memory_bytes; where a kernel's tiles depend on the
                         * shape, those of heads of 64 columns */
  int64_t fast_memory_bytes; /* the fast memory the schedules are blocked for; 0 = not declared */
  const char *schedule_backward; /* NULL, or the schedule of ATTEST_BACKWARD, which must be claimed,
                                  * like "two_pass:bq=32,bk=32,cq=32,ck=32"; judged as `schedule`
                                  * is. A library that is older than this field has 0 here */
  const attest_limits *limits;   /* NULL: all that the features say */
  uint32_t may_change;           /* ATTEST_MAY_CHANGE_LOCALE | ... */
  uint32_t reserved_bits;        /* 0 */
  attest_past_length past_length; /* with ATTEST_QUERY_LENGTHS */
  uint32_t more_reserved_bits;    /* 0 */
  uint64_t reserved[4];           /* 0 */
} attest_description;

/* ---- the calls ---- */

typedef struct attest_forward_args {
  size_t struct_size;
  const attest_problem *problem;
  const attest_tensor *Q, *K, *V; /* inputs */
  const attest_tensor *O;         /* output */
  const attest_tensor *LSE;       /* output; NULL when not asked for */
  void *workspace;                /* at a multiple of 16 bytes; NULL for 0 bytes */
  size_t workspace_bytes;         /* what attest_kernel.workspace_bytes asked for */
  void *stream;                   /* a cudaStream_t; NULL on the CPU */
  char *message; /* where a call that does not return ATTEST_OK may say why: a text of at most
                  * message_bytes with its final zero; NULL when nobody asks */
  size_t message_bytes;
  /* Additive bias or NULL: (batch, num_heads_q, seqlen_q, seqlen_k), of the type of Q or f32, added
   * to the scores after softcap and ALiBi; the sink has none. -inf: the key is not visible. Stride
   * 0 along the axes that it does not depend on, whatever is claimed of strides; the others as
   * tensors have them. With packed sequences entry b is that of sequence b, whose queries and
   * keys are counted from its first one. */
  const attest_tensor *bias;
} attest_forward_args;

/* Gradients of the scalar sum of dO * O (+ dLSE * LSE) with respect to Q, K and V; LSE in that sum
 * is the natural logarithm, whatever base the kernel stores. */

typedef struct attest_backward_args {
  size_t struct_size;
  const attest_problem *problem;
  const attest_tensor *Q, *K, *V;
  const attest_tensor *O, *LSE, *dO; /* as forward stored them; LSE NULL without ATTEST_LSE */
  const attest_tensor *dLSE;         /* NULL when there is none */
  const attest_tensor *dQ, *dK, *dV; /* outputs; dK, dV are summed over the heads of a group */
  void *workspace;                   /* as in forward, of ATTEST_BACKWARD */
  size_t workspace_bytes;
  void *stream;
  char *message; /* where a call that does not return ATTEST_OK may say why: a text of at most
                  * message_bytes with its final zero; NULL when nobody asks */
  size_t message_bytes;
  const attest_tensor *dSinks; /* output (num_heads_q), of LSE's type; NULL without sinks */
  const attest_tensor *bias;   /* as in forward */
  /* Output, of the type of bias; NULL without one. Extent 1 along each axis that bias does not
   * depend on: the sum over it. A pair that is not visible adds 0. */
  const attest_tensor *dBias;
} attest_backward_args;

/* L(X, Y) = 1/2 |D(X)^-1 exp(A1 X A2^T) A3 Y - E|^2 (Li et al. 2024): A1, A2, A3, E are
 * (seqlen, head_dim), X, Y, dX, dY are (head_dim, head_dim). */
typedef struct attest_loss_args {
  size_t struct_size;
  const attest_problem *problem; /* batch = heads = 1, seqlen_q = seqlen_k, head_dim_v = head_dim */
  const attest_tensor *A1, *A2, *A3, *E, *X, *Y; /* inputs */
  const attest_tensor *dX, *dY; /* outputs; dY is NULL for a kernel without ATTEST_LOSS_DY */
  void *workspace;
  size_t workspace_bytes;
  void *stream;
  char *message; /* where a call that does not return ATTEST_OK may say why: a text of at most
                  * message_bytes with its final zero; NULL when nobody asks */
  size_t message_bytes;
} attest_loss_args;

typedef struct attest_kernel {
  size_t struct_size;
  uint32_t abi_version; /* ATTEST_ABI_VERSION */
  attest_description description;
  void *self; /* the kernel's own, handed back in every call */
  /* Bytes of workspace for one call in one direction (ATTEST_FORWARD, ...); NULL = none needed. */
  size_t (*workspace_bytes)(const void *self, const attest_problem *problem, uint32_t direction);
  attest_status (*forward)(const void *self, const attest_forward_args *args);
  attest_status (*backward)(const void *self, const attest_backward_args *args);
  attest_status (*loss_gradient)(const void *self, const attest_loss_args *args);
} attest_kernel;

/* Returns kernel number `index`, from 0 on; NULL past the last one. A shared library exports this
 * function, and need export no other. The kernels must stay as they are for as long as the library
 * is loaded. */
ATTEST_EXPORT const attest_kernel *attest_get_kernel(uint32_t index);

#ifdef __cplusplus
}
#endif

/* On a CUDA device (description.device = ATTEST_CUDA) the elements of the tensors, the arrays of
 * the mask and of its sparsity pattern, alibi_slopes, sinks, the block table and the workspace lie
 * in the device's memory; the structs, shapes and strides on the host, as everything does in
 * workspace_bytes. The work goes to `stream`, a cudaStream_t, and nowhere else: inputs arrive on
 * it. A call may return before the work is done.
 */
#endif /* ATTEST_KERNEL_H */
