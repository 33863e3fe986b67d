/* A kernel for sequences of different lengths packed one after another, with cumulative lengths, as
 * a library for `attest certify`: `varlen_attention` is the kernel, the rest is the adapter.
 *   cc -O2 -shared -fPIC varlen.c -lm -o libvarlen.so */
#include <math.h>

#include "attest_kernel.h"

/* ---- the kernel, in its own shape ---- */

/* q, out (tokens_q, heads_q, dim), k, v (tokens_k, heads_kv, dim), lse (heads_q, tokens_q); tokens
 * cu_q[n] .. cu_q[n + 1] - 1 are sequence n; row holds the longest sequence of keys. */
static void varlen_attention(const float *q, const float *k, const float *v, float *out, float *lse,
                             float *row, const int32_t *cu_q, const int32_t *cu_k,
                             int64_t sequences, int64_t heads_q, int64_t heads_kv, int64_t dim,
                             float scale, int causal) {
  const int64_t tokens_q = cu_q[sequences];
  for (int64_t n = 0; n < sequences; ++n)
    for (int64_t i = cu_q[n]; i < cu_q[n + 1]; ++i)
      for (int64_t h = 0; h < heads_q; ++h) {
        const int64_t g = h / (heads_q / heads_kv);
        int64_t keys = cu_k[n + 1] - cu_k[n];
        if (causal) keys += i + 1 - cu_q[n + 1]; /* the last query sees all keys */
        const float *query = q + (i * heads_q + h) * dim;
        float *result = out + (i * heads_q + h) * dim;
        float m = -INFINITY, l = 0;
        for (int64_t j = 0; j < keys; ++j) {
          const float *key = k + ((cu_k[n] + j) * heads_kv + g) * dim;
          row[j] = 0;
          for (int64_t c = 0; c < dim; ++c) row[j] += query[c] * key[c];
          m = fmaxf(m, row[j] *= scale);
        }
        for (int64_t c = 0; c < dim; ++c) result[c] = 0;
        for (int64_t j = 0; j < keys; ++j) {
          const float *value = v + ((cu_k[n] + j) * heads_kv + g) * dim, weight = expf(row[j] - m);
          l += weight;
          for (int64_t c = 0; c < dim; ++c) result[c] += weight * value[c];
        }
        for (int64_t c = 0; c < dim && keys > 0; ++c) result[c] /= l;
        lse[h * tokens_q + i] = keys > 0 ? m + logf(l) : -INFINITY;
      }
}

/* ---- the adapter: packed sequences as they are, a batch of equal lengths as so many of them ----
 */

static float *at(const attest_tensor *t, int64_t a, int64_t b, int64_t c, int64_t d) {
  const int64_t *s = t->strides;
  return (float *)((char *)t->data + t->byte_offset) + a * s[0] + b * s[1] + c * s[2] +
         (t->ndim > 3 ? d * s[3] : 0);
}

enum direction { PACK, UNPACK };
static float *copy(const attest_tensor *t, float *packed, enum direction direction) {
  for (int64_t b = 0; b < t->shape[0]; ++b)
    for (int64_t s = 0; s < t->shape[1]; ++s)
      for (int64_t h = 0; h < t->shape[2]; ++h)
        for (int64_t c = 0; c < t->shape[3]; ++c, ++packed) {
          if (direction == PACK) *packed = *at(t, b, s, h, c);
          if (direction == UNPACK) *at(t, b, s, h, c) = *packed;
        }
  return packed;
}

static int64_t tokens(const attest_problem *p, const int32_t *cu_seqlens, int64_t seqlen) {
  return cu_seqlens ? cu_seqlens[p->batch] : p->batch * seqlen;
}

static size_t workspace_bytes(const void *self, const attest_problem *p, uint32_t direction) {
  const int64_t tokens_q = tokens(p, p->mask.cu_seqlens_q, p->seqlen_q);
  const int64_t tokens_k = tokens(p, p->mask.cu_seqlens_k, p->seqlen_k);
  const int64_t floats = 2 * tokens_q * p->num_heads_q * p->head_dim_qk +
                         2 * tokens_k * p->num_heads_kv * p->head_dim_qk +
                         tokens_q * p->num_heads_q + p->seqlen_k;
  return (size_t)floats * sizeof(float) + 2 * (size_t)(p->batch + 1) * sizeof(int32_t);
}

static attest_status forward(const void *self, const attest_forward_args *x) {
  const attest_problem *p = x->problem;
  const int32_t *cu_q = p->mask.cu_seqlens_q, *cu_k = p->mask.cu_seqlens_k;
  const int64_t tokens_q = tokens(p, cu_q, p->seqlen_q);
  float *q = x->workspace, *k = copy(x->Q, q, PACK), *v = copy(x->K, k, PACK);
  float *out = copy(x->V, v, PACK), *lse = out + tokens_q * p->num_heads_q * p->head_dim_qk;
  float *row = lse + tokens_q * p->num_heads_q;
  int32_t *made_q = (int32_t *)(row + p->seqlen_k), *made_k = made_q + p->batch + 1;
  for (int64_t n = 0; n <= p->batch; ++n) {
    made_q[n] = (int32_t)(n * p->seqlen_q);
    made_k[n] = (int32_t)(n * p->seqlen_k);
  }
  varlen_attention(q, k, v, out, lse, row, cu_q ? cu_q : made_q, cu_k ? cu_k : made_k, p->batch,
                   p->num_heads_q, p->num_heads_kv, p->head_dim_qk, (float)p->softmax_scale,
                   p->mask.window_right == 0);
  copy(x->O, out, UNPACK);
  if (x->LSE) { /* (1, heads, tokens) with packed sequences, else (batch, heads, seqlen) */
    const int64_t seqlen = x->LSE->shape[2];
    for (int64_t b = 0; b < x->LSE->shape[0]; ++b)
      for (int64_t h = 0; h < p->num_heads_q; ++h)
        for (int64_t i = 0; i < seqlen; ++i)
          *at(x->LSE, b, h, i, 0) = lse[h * tokens_q + b * seqlen + i];
  }
  return ATTEST_OK;
}

static const attest_kernel kernel = {
    .struct_size = sizeof kernel,
    .abi_version = ATTEST_ABI_VERSION,
    .description = {.struct_size = sizeof kernel.description,
                    .name = "example/varlen",
                    .summary = "sequences of different lengths, one after another",
                    .device = ATTEST_CPU,
                    .directions = ATTEST_FORWARD,
                    .dtypes = 1u << ATTEST_F32,
                    .features = ATTEST_PACKED_SEQUENCES | ATTEST_CAUSAL_BOTTOM_RIGHT | ATTEST_GQA |
                                ATTEST_ANY_SCALE | ATTEST_ANY_STRIDES | ATTEST_LSE |
                                ATTEST_CROSS_LENGTHS | ATTEST_EMPTY_ROWS,
                    .numerics = {.struct_size = sizeof kernel.description.numerics}},
    .workspace_bytes = workspace_bytes,
    .forward = forward};

const attest_kernel *attest_get_kernel(uint32_t index) { return index == 0 ? &kernel : NULL; }
