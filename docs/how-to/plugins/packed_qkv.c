/* A kernel whose inputs are one packed tensor (batch, seqlen, 3, heads, dim), as a library for
 * `attest certify`: `packed_attention` is the kernel, the rest is the adapter.
 *   cc -O2 -shared -fPIC packed_qkv.c -lm -o libpacked_qkv.so */
#include <math.h>

#include "attest_kernel.h"

/* ---- the kernel, in its own shape ---- */

/* qkv (batch, seqlen, 3, heads, dim), out (batch, seqlen, heads, dim), lse (batch, heads, seqlen);
 * row holds seqlen floats. */
static void packed_attention(const float *qkv, float *out, float *lse, float *row, int64_t batch,
                             int64_t seqlen, int64_t heads, int64_t dim, float scale, int causal) {
  const int64_t token = 3 * heads * dim;
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t i = 0; i < seqlen; ++i) {
        const float *q = qkv + (b * seqlen + i) * token + h * dim;
        const float *k = qkv + b * seqlen * token + (heads + h) * dim, *v = k + heads * dim;
        const int64_t keys = causal ? i + 1 : seqlen;
        float m = -INFINITY, l = 0;
        for (int64_t j = 0; j < keys; ++j) {
          row[j] = 0;
          for (int64_t c = 0; c < dim; ++c) row[j] += q[c] * k[j * token + c];
          m = fmaxf(m, row[j] *= scale);
        }
        for (int64_t j = 0; j < keys; ++j) l += row[j] = expf(row[j] - m);
        for (int64_t c = 0; c < dim; ++c) {
          float sum = 0;
          for (int64_t j = 0; j < keys; ++j) sum += row[j] * v[j * token + c];
          out[((b * seqlen + i) * heads + h) * dim + c] = sum / l;
        }
        lse[(b * heads + h) * seqlen + i] = m + logf(l);
      }
}

/* ---- the adapter: tensors with any strides, copied into the shape and back ---- */

static float *at(const attest_tensor *t, int64_t a, int64_t b, int64_t c, int64_t d) {
  const int64_t *s = t->strides;
  return (float *)((char *)t->data + t->byte_offset) + a * s[0] + b * s[1] + c * s[2] +
         (t->ndim > 3 ? d * s[3] : 0);
}

/* Floats of one (batch, seqlen, heads, dim) tensor. */
static size_t floats(const attest_problem *p) {
  return (size_t)(p->batch * p->seqlen_q * p->num_heads_q * p->head_dim_qk);
}

static size_t workspace_bytes(const void *self, const attest_problem *p, uint32_t direction) {
  return (4 * floats(p) + (size_t)(p->batch * p->num_heads_q * p->seqlen_q + p->seqlen_q)) *
         sizeof(float);
}

static attest_status forward(const void *self, const attest_forward_args *x) {
  const attest_problem *p = x->problem;
  const int64_t s = p->seqlen_q, h = p->num_heads_q, d = p->head_dim_qk;
  float *qkv = x->workspace, *out = qkv + 3 * floats(p), *lse = out + floats(p);
  const attest_tensor *inputs[3] = {x->Q, x->K, x->V};
  for (int64_t b = 0; b < p->batch; ++b)
    for (int64_t i = 0; i < s; ++i)
      for (int64_t which = 0; which < 3; ++which)
        for (int64_t g = 0; g < h; ++g)
          for (int64_t c = 0; c < d; ++c)
            qkv[(((b * s + i) * 3 + which) * h + g) * d + c] = *at(inputs[which], b, i, g, c);
  packed_attention(qkv, out, lse, lse + p->batch * h * s, p->batch, s, h, d,
                   (float)p->softmax_scale, p->mask.window_right == 0);
  for (int64_t b = 0; b < p->batch; ++b)
    for (int64_t g = 0; g < h; ++g)
      for (int64_t i = 0; i < s; ++i) {
        for (int64_t c = 0; c < d; ++c) *at(x->O, b, i, g, c) = out[((b * s + i) * h + g) * d + c];
        if (x->LSE) *at(x->LSE, b, g, i, 0) = lse[(b * h + g) * s + i];
      }
  return ATTEST_OK;
}

/* One sequence length and one head dimension, so neither CROSS_LENGTHS, GQA nor HEAD_DIM_V; with
 * one length the two causal alignments are the same. */
static const attest_kernel kernel = {
    .struct_size = sizeof kernel,
    .abi_version = ATTEST_ABI_VERSION,
    .description = {.struct_size = sizeof kernel.description,
                    .name = "example/packed_qkv",
                    .summary = "inputs packed as (batch, seqlen, 3, heads, dim)",
                    .device = ATTEST_CPU,
                    .directions = ATTEST_FORWARD,
                    .dtypes = 1u << ATTEST_F32,
                    .features = ATTEST_CAUSAL_TOP_LEFT | ATTEST_CAUSAL_BOTTOM_RIGHT |
                                ATTEST_ANY_SCALE | ATTEST_ANY_STRIDES | ATTEST_LSE,
                    .numerics = {.struct_size = sizeof kernel.description.numerics}},
    .workspace_bytes = workspace_bytes,
    .forward = forward};

const attest_kernel *attest_get_kernel(uint32_t index) { return index == 0 ? &kernel : NULL; }
