/* The attention of a small language model's training loop, as it is written there: always causal,
 * always as many keys as queries, heads of 64 columns, one scale, rows in one order. The
 * description says so in `limits`: nothing else is asked. */
#include <math.h>
#include <stdlib.h>

#include "attest_kernel.h"

enum { HEAD = 64 };

static float *row(const attest_tensor *t, int64_t b, int64_t s, int64_t h) {
  return (float *)((char *)t->data + t->byte_offset) + b * t->strides[0] + s * t->strides[1] +
         h * t->strides[2];
}

static size_t workspace_bytes(const void *self, const attest_problem *p, uint32_t direction) {
  (void)self;
  (void)direction;
  return (size_t)p->seqlen_q * sizeof(float);
}

static attest_status forward(const void *self, const attest_forward_args *x) {
  const attest_problem *p = x->problem;
  const float scale = 1.0f / sqrtf(HEAD);
  float *weights = x->workspace;
  (void)self;
  for (int64_t b = 0; b < p->batch; ++b)
    for (int64_t h = 0; h < p->num_heads_q; ++h)
      for (int64_t t = 0; t < p->seqlen_q; ++t) {
        const float *query = row(x->Q, b, t, h);
        float largest = -INFINITY, sum = 0;
        for (int64_t s = 0; s <= t; ++s) {
          const float *key = row(x->K, b, s, h);
          float score = 0;
          for (int c = 0; c < HEAD; ++c) score += query[c] * key[c];
          weights[s] = score * scale;
          if (weights[s] > largest) largest = weights[s];
        }
        for (int64_t s = 0; s <= t; ++s) sum += weights[s] = expf(weights[s] - largest);
        float *out = row(x->O, b, t, h);
        for (int c = 0; c < HEAD; ++c) out[c] = 0;
        for (int64_t s = 0; s <= t; ++s) {
          const float *value = row(x->V, b, s, h), weight = weights[s] / sum;
          for (int c = 0; c < HEAD; ++c) out[c] += weight * value[c];
        }
      }
  return ATTEST_OK;
}

static const attest_limits limits = {.struct_size = sizeof limits,
                                     .only = ATTEST_ONLY_CAUSAL | ATTEST_ONLY_ONE_SCALE,
                                     .head_dims = {HEAD}};

static const attest_kernel kernel = {
    .struct_size = sizeof kernel,
    .abi_version = ATTEST_ABI_VERSION,
    .description = {.struct_size = sizeof kernel.description,
                    .name = "example/causal",
                    .summary = "a training loop's attention in float32",
                    .device = ATTEST_CPU,
                    .directions = ATTEST_FORWARD,
                    .dtypes = 1u << ATTEST_F32,
                    .features = ATTEST_CAUSAL_TOP_LEFT,
                    .limits = &limits,
                    .numerics = {.struct_size = sizeof kernel.description.numerics}},
    .workspace_bytes = workspace_bytes,
    .forward = forward};

const attest_kernel *attest_get_kernel(uint32_t index) { return index == 0 ? &kernel : NULL; }
