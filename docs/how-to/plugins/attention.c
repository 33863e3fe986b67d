/* Attention, forward and backward, as a library for `attest certify`: plain loops in float32.
 *   cc -O2 -shared -fPIC -I <directory of attest_kernel.h> attention.c -lm -o libattention.so */
#include <math.h>

#include "attest_kernel.h"

/* Element (a, b, c, d) of a float tensor, whatever its strides. */
static float *at(const attest_tensor *t, int64_t a, int64_t b, int64_t c, int64_t d) {
  const int64_t *s = t->strides;
  return (float *)((char *)t->data + t->byte_offset) + a * s[0] + b * s[1] + c * s[2] +
         (t->ndim > 3 ? d * s[3] : 0);
}

/* The keys that query i sees: all, or with causal bottom-right the first i + 1 + sk - sq. */
static int64_t visible(const attest_problem *p, int64_t i) {
  const int64_t last = p->mask.window_right < 0 ? p->seqlen_k : i + 1 + p->seqlen_k - p->seqlen_q;
  return last < 0 ? 0 : last < p->seqlen_k ? last : p->seqlen_k;
}

static float score(const attest_problem *p, const attest_tensor *Q, const attest_tensor *K,
                   int64_t b, int64_t h, int64_t i, int64_t j) {
  const int64_t g = h / (p->num_heads_q / p->num_heads_kv);
  float sum = 0;
  for (int64_t c = 0; c < p->head_dim_qk; ++c) sum += *at(Q, b, i, h, c) * *at(K, b, j, g, c);
  return sum * (float)p->softmax_scale;
}

static size_t workspace_bytes(const void *self, const attest_problem *p, uint32_t direction) {
  return direction == ATTEST_FORWARD ? (size_t)p->seqlen_k * sizeof(float) : 0;
}

static attest_status forward(const void *self, const attest_forward_args *x) {
  const attest_problem *p = x->problem;
  float *P = x->workspace; /* one row of the weights */
  for (int64_t b = 0; b < p->batch; ++b)
    for (int64_t h = 0; h < p->num_heads_q; ++h)
      for (int64_t i = 0; i < p->seqlen_q; ++i) {
        const int64_t n = visible(p, i), g = h / (p->num_heads_q / p->num_heads_kv);
        float m = -INFINITY, l = 0;
        for (int64_t j = 0; j < n; ++j) m = fmaxf(m, P[j] = score(p, x->Q, x->K, b, h, i, j));
        for (int64_t j = 0; j < n; ++j) l += P[j] = expf(P[j] - m);
        for (int64_t c = 0; c < p->head_dim_v; ++c) {
          float sum = 0;
          for (int64_t j = 0; j < n; ++j) sum += P[j] * *at(x->V, b, j, g, c);
          *at(x->O, b, i, h, c) = n > 0 ? sum / l : 0;
        }
        if (x->LSE) *at(x->LSE, b, h, i, 0) = n > 0 ? m + logf(l) : -INFINITY;
      }
  return ATTEST_OK;
}

static void clear(const attest_tensor *t) {
  for (int64_t b = 0; b < t->shape[0]; ++b)
    for (int64_t s = 0; s < t->shape[1]; ++s)
      for (int64_t h = 0; h < t->shape[2]; ++h)
        for (int64_t c = 0; c < t->shape[3]; ++c) *at(t, b, s, h, c) = 0;
}

static attest_status backward(const void *self, const attest_backward_args *x) {
  const attest_problem *p = x->problem;
  const float scale = (float)p->softmax_scale;
  clear(x->dQ), clear(x->dK), clear(x->dV);
  for (int64_t b = 0; b < p->batch; ++b)
    for (int64_t h = 0; h < p->num_heads_q; ++h)
      for (int64_t i = 0; i < p->seqlen_q; ++i) {
        const int64_t n = visible(p, i), g = h / (p->num_heads_q / p->num_heads_kv);
        float delta = 0;
        for (int64_t c = 0; c < p->head_dim_v; ++c)
          delta += *at(x->dO, b, i, h, c) * *at(x->O, b, i, h, c);
        for (int64_t j = 0; j < n; ++j) {
          const float P = expf(score(p, x->Q, x->K, b, h, i, j) - *at(x->LSE, b, h, i, 0));
          float dP = 0;
          for (int64_t c = 0; c < p->head_dim_v; ++c) {
            dP += *at(x->dO, b, i, h, c) * *at(x->V, b, j, g, c);
            *at(x->dV, b, j, g, c) += P * *at(x->dO, b, i, h, c);
          }
          const float dS = P * (dP - delta) * scale;
          for (int64_t c = 0; c < p->head_dim_qk; ++c) {
            *at(x->dQ, b, i, h, c) += dS * *at(x->K, b, j, g, c);
            *at(x->dK, b, j, g, c) += dS * *at(x->Q, b, i, h, c);
          }
        }
      }
  return ATTEST_OK;
}

static const attest_kernel kernel = {
    .struct_size = sizeof kernel,
    .abi_version = ATTEST_ABI_VERSION,
    .description = {.struct_size = sizeof kernel.description,
                    .name = "example/attention",
                    .summary = "plain loops in float32",
                    .device = ATTEST_CPU,
                    .directions = ATTEST_FORWARD | ATTEST_BACKWARD,
                    .dtypes = 1u << ATTEST_F32,
                    .features = ATTEST_CAUSAL_BOTTOM_RIGHT | ATTEST_GQA | ATTEST_HEAD_DIM_V |
                                ATTEST_ANY_SCALE | ATTEST_ANY_STRIDES | ATTEST_LSE |
                                ATTEST_CROSS_LENGTHS | ATTEST_EMPTY_ROWS,
                    .numerics = {.struct_size = sizeof kernel.description.numerics}},
    .workspace_bytes = workspace_bytes,
    .forward = forward,
    .backward = backward};

const attest_kernel *attest_get_kernel(uint32_t index) { return index == 0 ? &kernel : NULL; }
