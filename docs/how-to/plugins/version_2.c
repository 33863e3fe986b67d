/* Attention, forward and backward, that reads every field of version 2 of the interface: sinks,
 * pages, biases, masks of heads, query lengths, windows with both ends anywhere. Plain loops in
 * float32, to copy from; without softcap and sparse masks.
 *   cc -O2 -shared -fPIC -I <directory of attest_kernel.h> version_2.c -lm -o libversion_2.so */
#include <math.h>

#include "attest_kernel.h"

/* Element (a, b, c, d) of a float tensor, whatever its strides; with fewer axes the last are 0. */
static float *at(const attest_tensor *t, int64_t a, int64_t b, int64_t c, int64_t d) {
  const int64_t index[4] = {a, b, c, d};
  float *element = (float *)((char *)t->data + t->byte_offset);
  for (int axis = 0; axis < t->ndim; ++axis) element += index[axis] * t->strides[axis];
  return element;
}

/* One query head of a batch entry, or of a packed sequence. */
typedef struct head {
  const attest_problem *problem;
  const attest_tensor *bias;    /* or NULL */
  int64_t b, h, g;              /* sequence, query head, key head */
  int64_t entry;                /* b along the batch axis of the tensors; 0 where they are packed */
  int64_t first_row, first_key; /* of a packed sequence; else 0 */
  int64_t rows;                 /* of Q and O */
  int64_t queries, keys;        /* those that exist */
  float sink;                   /* -inf: none */
} head;

static head head_of(const attest_problem *p, const attest_tensor *bias, int64_t b, int64_t h) {
  const attest_mask *m = &p->mask;
  head x = {.problem = p,
            .bias = bias,
            .b = b,
            .h = h,
            .g = h / (p->num_heads_q / p->num_heads_kv),
            .entry = b,
            .rows = p->seqlen_q,
            .keys = p->seqlen_k,
            .sink = p->sinks ? p->sinks[h] : -INFINITY};
  if (m->cu_seqlens_q) {
    x.entry = 0;
    x.first_row = m->cu_seqlens_q[b], x.rows = m->cu_seqlens_q[b + 1] - x.first_row;
    x.first_key = m->cu_seqlens_k[b], x.keys = m->cu_seqlens_k[b + 1] - x.first_key;
  }
  x.queries = m->query_lengths ? m->query_lengths[b] : x.rows;
  if (m->key_lengths) x.keys = m->key_lengths[b];
  return x;
}

/* Key j's row of K or V: in the order of the keys, or in a slot of one of the entry's pages. */
static float *key_row(const head *x, const attest_tensor *t, int64_t j) {
  const attest_paged_kv *paged = x->problem->paged_kv;
  if (!paged) return at(t, x->entry, x->first_key + j, x->g, 0);
  const int32_t *pages = paged->block_table + x->b * paged->max_pages;
  return at(t, pages[j / paged->page_size], j % paged->page_size, x->g, 0);
}

/* Query i's row of Q, O or a gradient of them. */
static float *query_row(const head *x, const attest_tensor *t, int64_t i) {
  return at(t, x->entry, x->first_row + i, x->h, 0);
}

/* The key that query i is aligned with, from which windows and ALiBi are measured. */
static int64_t aligned(const head *x, int64_t i) {
  return x->problem->mask.align == ATTEST_BOTTOM_RIGHT ? i + x->keys - x->queries : i;
}

static int in_window(const attest_mask *m, int64_t distance) {
  const attest_window_ends *ends = m->window_ends;
  const int left = ends ? !ends->left_unbounded : m->window_left >= 0;
  const int right = ends ? !ends->right_unbounded : m->window_right >= 0;
  return (!left || distance >= -m->window_left) && (!right || distance <= m->window_right);
}

static int visible(const head *x, int64_t i, int64_t j) {
  const attest_mask *m = &x->problem->mask;
  const attest_head_mask *n = m->per_head;
  if (i >= x->queries || !in_window(m, j - aligned(x, i))) return 0;
  if (m->boolean && !m->boolean[i * x->problem->seqlen_k + j]) return 0;
  if (n && !n->visible[x->b * n->strides[0] + x->h * n->strides[1] + i * n->strides[2] +
                       j * n->strides[3]])
    return 0;
  return !x->bias || *at(x->bias, x->b, x->h, i, j) != -INFINITY;
}

static float product(const float *a, int64_t stride_a, const float *b, int64_t stride_b,
                     int64_t n) {
  float sum = 0;
  for (int64_t c = 0; c < n; ++c) sum += a[c * stride_a] * b[c * stride_b];
  return sum;
}

/* The bias is of float32: it has the type of Q, or that one. */
static float score(const head *x, const attest_tensor *Q, const attest_tensor *K, int64_t i,
                   int64_t j) {
  const attest_problem *p = x->problem;
  float s =
      product(query_row(x, Q, i), Q->strides[3], key_row(x, K, j), K->strides[3], p->head_dim_qk) *
      (float)p->softmax_scale;
  if (p->alibi_slopes) s -= p->alibi_slopes[x->h] * fabsf((float)(aligned(x, i) - j));
  return x->bias ? s + *at(x->bias, x->b, x->h, i, j) : s;
}

/* The scores of a row. */
static size_t workspace_bytes(const void *self, const attest_problem *p, uint32_t direction) {
  (void)self;
  return direction == ATTEST_FORWARD ? (size_t)p->seqlen_k * sizeof(float) : 0;
}

/* Keys that are not visible are passed over, since a weight of 0 times NaN would be NaN. Rows past
 * the query length have no sink. */
static void forward_row(const head *x, const attest_forward_args *args, int64_t i) {
  const int64_t n = x->problem->head_dim_v, step = args->O->strides[3];
  float *S = args->workspace, *O = query_row(x, args->O, i);
  const float sink = i < x->queries ? x->sink : -INFINITY;
  float m = sink, l = 0;
  for (int64_t j = 0; j < x->keys; ++j)
    if (visible(x, i, j)) m = fmaxf(m, S[j] = score(x, args->Q, args->K, i, j));
  if (sink != -INFINITY) l = expf(sink - m);
  for (int64_t c = 0; c < n; ++c) O[c * step] = 0;
  int empty = sink == -INFINITY; /* not from m: it may be -inf, or pass over NaN */
  for (int64_t j = 0; j < x->keys; ++j) {
    if (!visible(x, i, j)) continue;
    const float *V = key_row(x, args->V, j), P = expf(S[j] - m);
    for (int64_t c = 0; c < n; ++c) O[c * step] += P * V[c * args->V->strides[3]];
    l += P;
    empty = 0;
  }
  for (int64_t c = 0; c < n && !empty; ++c) O[c * step] /= l;
  if (args->LSE)
    *at(args->LSE, x->entry, x->h, x->first_row + i, 0) = empty ? -INFINITY : m + logf(l);
}

static attest_status forward(const void *self, const attest_forward_args *args) {
  const attest_problem *p = args->problem;
  (void)self;
  for (int64_t b = 0; b < p->batch; ++b)
    for (int64_t h = 0; h < p->num_heads_q; ++h) {
      const head x = head_of(p, args->bias, b, h);
      for (int64_t i = 0; i < x.rows; ++i) forward_row(&x, args, i);
    }
  return ATTEST_OK;
}

static void clear(const attest_tensor *t) {
  for (int64_t a = 0; a < t->shape[0]; ++a)
    for (int64_t b = 0; b < t->shape[1]; ++b)
      for (int64_t c = 0; c < t->shape[2]; ++c)
        for (int64_t d = 0; d < t->shape[3]; ++d) *at(t, a, b, c, d) = 0;
}

/* The element of dBias that pair (i, j) adds to: extent 1 along axes that the bias has not. */
static float *bias_gradient(const head *x, const attest_tensor *t, int64_t i, int64_t j) {
  const int64_t *n = t->shape;
  return at(t, n[0] > 1 ? x->b : 0, n[1] > 1 ? x->h : 0, n[2] > 1 ? i : 0, n[3] > 1 ? j : 0);
}

/* Adds what a row gives to the gradients. P = exp(S - LSE), of the sink too. */
static void backward_row(const head *x, const attest_backward_args *args, int64_t i) {
  const attest_problem *p = x->problem;
  const float *Q = query_row(x, args->Q, i), *dO = query_row(x, args->dO, i);
  const int64_t row = x->first_row + i, step = args->dO->strides[3];
  const float LSE = *at(args->LSE, x->entry, x->h, row, 0);
  float delta = product(dO, step, query_row(x, args->O, i), args->O->strides[3], p->head_dim_v);
  if (args->dLSE) delta -= *at(args->dLSE, x->entry, x->h, row, 0);
  if (args->dSinks && x->sink != -INFINITY)
    *at(args->dSinks, x->h, 0, 0, 0) -= expf(x->sink - LSE) * delta;
  for (int64_t j = 0; j < x->keys; ++j) {
    if (!visible(x, i, j)) continue;
    const float *K = key_row(x, args->K, j), *V = key_row(x, args->V, j);
    float *dQ = query_row(x, args->dQ, i);
    float *dK = key_row(x, args->dK, j), *dV = key_row(x, args->dV, j);
    const float P = expf(score(x, args->Q, args->K, i, j) - LSE);
    const float dS = P * (product(dO, step, V, args->V->strides[3], p->head_dim_v) - delta);
    const float scaled = dS * (float)p->softmax_scale;
    if (args->dBias) *bias_gradient(x, args->dBias, i, j) += dS;
    for (int64_t c = 0; c < p->head_dim_v; ++c) dV[c * args->dV->strides[3]] += P * dO[c * step];
    for (int64_t c = 0; c < p->head_dim_qk; ++c) {
      dQ[c * args->dQ->strides[3]] += scaled * K[c * args->K->strides[3]];
      dK[c * args->dK->strides[3]] += scaled * Q[c * args->Q->strides[3]];
    }
  }
}

static attest_status backward(const void *self, const attest_backward_args *args) {
  const attest_problem *p = args->problem;
  (void)self;
  if (p->paged_kv) return ATTEST_UNSUPPORTED;
  clear(args->dQ), clear(args->dK), clear(args->dV);
  if (args->dBias) clear(args->dBias);
  for (int64_t h = 0; h < p->num_heads_q && args->dSinks; ++h) *at(args->dSinks, h, 0, 0, 0) = 0;
  for (int64_t b = 0; b < p->batch; ++b)
    for (int64_t h = 0; h < p->num_heads_q; ++h) {
      const head x = head_of(p, args->bias, b, h);
      for (int64_t i = 0; i < x.queries; ++i) backward_row(&x, args, i);
    }
  return ATTEST_OK;
}

/* Every loop runs over one row of one entry, so that neither other entries nor num_splits nor
 * strides change a bit. */
static const attest_kernel kernel = {
    .struct_size = sizeof kernel,
    .abi_version = ATTEST_ABI_VERSION,
    .description = {.struct_size = sizeof kernel.description,
                    .name = "example/version_2",
                    .summary = "plain loops in float32 that read every field",
                    .device = ATTEST_CPU,
                    .directions = ATTEST_FORWARD | ATTEST_BACKWARD,
                    .dtypes = 1u << ATTEST_F32,
                    .features = ATTEST_CAUSAL_TOP_LEFT | ATTEST_CAUSAL_BOTTOM_RIGHT |
                                ATTEST_WINDOW | ATTEST_OFFSET_WINDOW | ATTEST_KEY_LENGTHS |
                                ATTEST_BOOLEAN_MASK | ATTEST_QUERY_LENGTHS |
                                ATTEST_PACKED_SEQUENCES | ATTEST_HEAD_MASK | ATTEST_CROSS_LENGTHS |
                                ATTEST_EMPTY_ROWS | ATTEST_GQA | ATTEST_HEAD_DIM_V |
                                ATTEST_SHARED_KV | ATTEST_PAGED_KV | ATTEST_SINKS | ATTEST_BIAS |
                                ATTEST_ALIBI | ATTEST_ANY_SCALE | ATTEST_ANY_STRIDES |
                                ATTEST_LAYOUT_BITS | ATTEST_LSE | ATTEST_DLSE |
                                ATTEST_BATCH_INVARIANT | ATTEST_SPLIT_INVARIANT | ATTEST_NONFINITE,
                    .numerics = {.struct_size = sizeof kernel.description.numerics}},
    .workspace_bytes = workspace_bytes,
    .forward = forward,
    .backward = backward};

const attest_kernel *attest_get_kernel(uint32_t index) { return index == 0 ? &kernel : NULL; }
