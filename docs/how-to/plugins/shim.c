/* docs/how-to/plugins/shim.c: the adapter of my_attention, causal attention of one head. */
#include "attest_kernel.h"

void my_attention(const float *q, long ldq, const float *k, long ldk, const float *v, long ldv,
                  float *out, long ldo, long seqlen, long dim);

/* The first row of head h in batch entry b; tensors are (batch, seqlen, heads, head_dim). */
static float *head(const attest_tensor *t, int64_t b, int64_t h) {
  return (float *)((char *)t->data + t->byte_offset) + b * t->strides[0] + h * t->strides[2];
}

static attest_status forward(const void *self, const attest_forward_args *x) {
  const attest_problem *p = x->problem;
  (void)self;
  for (int64_t b = 0; b < p->batch; ++b)
    for (int64_t h = 0; h < p->num_heads_q; ++h)
      my_attention(head(x->Q, b, h), x->Q->strides[1], head(x->K, b, h), x->K->strides[1],
                   head(x->V, b, h), x->V->strides[1], head(x->O, b, h), x->O->strides[1],
                   p->seqlen_q, p->head_dim_qk);
  return ATTEST_OK;
}

/* All that is asked of it, with equal lengths and heads: no feature below claims others. */
static const attest_limits limits = {.struct_size = sizeof limits,
                                     .only = ATTEST_ONLY_CAUSAL | ATTEST_ONLY_ONE_SCALE};

static const attest_kernel kernel = {
    .struct_size = sizeof kernel,
    .abi_version = ATTEST_ABI_VERSION,
    .description = {.struct_size = sizeof kernel.description,
                    .name = "my/attention",
                    .summary = "causal, one pass over the keys",
                    .device = ATTEST_CPU,
                    .directions = ATTEST_FORWARD,
                    .dtypes = 1u << ATTEST_F32,
                    .features = ATTEST_CAUSAL_TOP_LEFT,
                    .limits = &limits,
                    .numerics = {.struct_size = sizeof kernel.description.numerics}},
    .forward = forward};

const attest_kernel *attest_get_kernel(uint32_t index) { return index == 0 ? &kernel : 0; }
