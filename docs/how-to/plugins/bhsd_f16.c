/* A kernel for contiguous (batch, heads, seqlen, dim) tensors in float16, as a library for
 * `attest certify`: `attention_bhsd` is the kernel, the rest is the adapter.
 *   cc -O2 -shared -fPIC bhsd_f16.c -lm -o libbhsd_f16.so */
#include <math.h>
#include <string.h>

#include "attest_kernel.h"

typedef uint16_t half; /* IEEE binary16 */

static float from_half(half bits) {
  const uint32_t word = (uint32_t)(bits & 0x7fff) << 13; /* binary32, its exponent smaller by 112 */
  float size;
  memcpy(&size, &word, sizeof size);
  size *= 0x1p112f; /* exact, subnormal or not */
  if (size >= 65536.0f) size = bits & 1023 ? NAN : INFINITY;
  return bits & 0x8000 ? -size : size;
}

/* To nearest, ties to even; subnormal results are kept. */
static half to_half(float value) {
  const half sign = signbit(value) ? 0x8000 : 0;
  const float size = fabsf(value);
  if (isnan(size)) return (half)(sign | 0x7e00);
  if (size >= 65520.0f) return (half)(sign | 0x7c00);
  if (size < 0x1p-14f) return (half)(sign | (half)nearbyintf(size * 0x1p24f));
  int exponent;
  const float fraction = nearbyintf(frexpf(size, &exponent) * 2048.0f); /* 1024 to 2048 */
  return (half)(sign | (half)(((exponent + 13) << 10) + (int)fraction));
}

/* ---- the kernel, in its own shape ---- */

/* q, out (batch, heads, seqlen_q, dim), k, v (batch, heads, seqlen_k, dim), lse (batch, heads,
 * seqlen_q); row holds seqlen_k floats, vector dim. Products are added in float32; P is rounded to
 * float16. */
static void attention_bhsd(const half *q, const half *k, const half *v, half *out, float *lse,
                           float *row, float *vector, int64_t matrices, int64_t seqlen_q,
                           int64_t seqlen_k, int64_t dim, float scale) {
  for (int64_t bh = 0; bh < matrices; ++bh, k += seqlen_k * dim, v += seqlen_k * dim)
    for (int64_t i = 0; i < seqlen_q; ++i, q += dim, out += dim) {
      float m = -INFINITY, l = 0;
      for (int64_t c = 0; c < dim; ++c) vector[c] = from_half(q[c]);
      for (int64_t j = 0; j < seqlen_k; ++j) {
        float sum = 0;
        for (int64_t c = 0; c < dim; ++c) sum += vector[c] * from_half(k[j * dim + c]);
        m = fmaxf(m, row[j] = sum * scale);
      }
      for (int64_t j = 0; j < seqlen_k; ++j) {
        l += row[j] = expf(row[j] - m);
        row[j] = from_half(to_half(row[j]));
      }
      for (int64_t c = 0; c < dim; ++c) vector[c] = 0;
      for (int64_t j = 0; j < seqlen_k; ++j)
        for (int64_t c = 0; c < dim; ++c) vector[c] += row[j] * from_half(v[j * dim + c]);
      for (int64_t c = 0; c < dim; ++c) out[c] = to_half(vector[c] / l);
      *lse++ = m + logf(l);
    }
}

/* ---- the adapter ---- */

static half *at(const attest_tensor *t, int64_t b, int64_t s, int64_t h, int64_t c) {
  return (half *)((char *)t->data + t->byte_offset) + b * t->strides[0] + s * t->strides[1] +
         h * t->strides[2] + c * t->strides[3];
}

static int64_t elements(const attest_tensor *t) {
  return t->shape[0] * t->shape[1] * t->shape[2] * t->shape[3];
}

/* Whether the tensor lies as the kernel wants it: no copy is needed then. */
static int is_bhsd(const attest_tensor *t) {
  const int64_t s = t->shape[1], h = t->shape[2], d = t->shape[3];
  return t->strides[3] == 1 && t->strides[1] == d && t->strides[2] == s * d &&
         t->strides[0] == h * s * d;
}

enum direction { PACK, UNPACK };
static void copy(const attest_tensor *t, half *packed, enum direction direction) {
  for (int64_t b = 0; b < t->shape[0]; ++b)
    for (int64_t h = 0; h < t->shape[2]; ++h)
      for (int64_t s = 0; s < t->shape[1]; ++s)
        for (int64_t c = 0; c < t->shape[3]; ++c, ++packed) {
          if (direction == PACK) *packed = *at(t, b, s, h, c);
          if (direction == UNPACK) *at(t, b, s, h, c) = *packed;
        }
}

/* The tensor as the kernel wants it: itself, or a copy in the workspace, which moves on. */
static half *packed(const attest_tensor *t, half **space) {
  if (is_bhsd(t)) return at(t, 0, 0, 0, 0);
  half *result = *space;
  *space += elements(t);
  return result;
}

static size_t workspace_bytes(const void *self, const attest_problem *p, uint32_t direction) {
  const int64_t heads = p->batch * p->num_heads_q;
  const int64_t halves = 2 * heads * (p->seqlen_q + p->seqlen_k) * p->head_dim_qk;
  return (size_t)(p->seqlen_k + p->head_dim_qk + heads * p->seqlen_q) * sizeof(float) +
         (size_t)halves * sizeof(half);
}

static attest_status forward(const void *self, const attest_forward_args *x) {
  const attest_problem *p = x->problem;
  float *row = x->workspace, *vector = row + p->seqlen_k, *lse = vector + p->head_dim_qk;
  half *space = (half *)(lse + p->batch * p->num_heads_q * p->seqlen_q);
  const attest_tensor *inputs[3] = {x->Q, x->K, x->V};
  const half *in[3];
  for (int k = 0; k < 3; ++k) {
    half *place = packed(inputs[k], &space);
    if (!is_bhsd(inputs[k])) copy(inputs[k], place, PACK);
    in[k] = place;
  }
  half *out = packed(x->O, &space);
  attention_bhsd(in[0], in[1], in[2], out, lse, row, vector, p->batch * p->num_heads_q, p->seqlen_q,
                 p->seqlen_k, p->head_dim_qk, (float)p->softmax_scale);
  if (!is_bhsd(x->O)) copy(x->O, out, UNPACK);
  for (int64_t b = 0; x->LSE && b < p->batch; ++b)
    for (int64_t h = 0; h < p->num_heads_q; ++h)
      for (int64_t i = 0; i < p->seqlen_q; ++i)
        ((float *)((char *)x->LSE->data +
                   x->LSE->byte_offset))[b * x->LSE->strides[0] + h * x->LSE->strides[1] +
                                         i * x->LSE->strides[2]] =
            lse[(b * p->num_heads_q + h) * p->seqlen_q + i];
  return ATTEST_OK;
}

static const attest_kernel kernel = {
    .struct_size = sizeof kernel,
    .abi_version = ATTEST_ABI_VERSION,
    .description = {.struct_size = sizeof kernel.description,
                    .name = "example/bhsd_f16",
                    .summary = "contiguous (batch, heads, seqlen, dim) in float16",
                    .device = ATTEST_CPU,
                    .directions = ATTEST_FORWARD,
                    .dtypes = 1u << ATTEST_F16,
                    .features =
                        ATTEST_ANY_SCALE | ATTEST_ANY_STRIDES | ATTEST_LSE | ATTEST_CROSS_LENGTHS,
                    .numerics = {.struct_size = sizeof kernel.description.numerics,
                                 .p_cast = 1 + ATTEST_F16}},
    .workspace_bytes = workspace_bytes,
    .forward = forward};

const attest_kernel *attest_get_kernel(uint32_t index) { return index == 0 ? &kernel : NULL; }
