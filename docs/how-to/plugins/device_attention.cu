/* Attention on a CUDA device, forward, as a library for `attest certify`: a thread for each row.
 *   nvcc -O2 -shared -Xcompiler -fPIC -I <directory of attest_kernel.h> device_attention.cu \
 *        -o libdevice_attention.so */
#include "attest_kernel.h"

struct Tensor { /* on the device */
  float *first;
  int64_t strides[4];
  __device__ float &operator()(int64_t a, int64_t b, int64_t c, int64_t d = 0) const {
    return first[a * strides[0] + b * strides[1] + c * strides[2] + d * strides[3]];
  }
};

static Tensor on_device(const attest_tensor *t) {
  Tensor tensor = {}; /* first is NULL where there is no tensor */
  if (t == NULL) return tensor;
  tensor.first = (float *)((char *)t->data + t->byte_offset);
  for (int axis = 0; axis < t->ndim; ++axis) tensor.strides[axis] = t->strides[axis];
  return tensor;
}

/* By value: structs of the call lie on the host. */
__global__ void attention(attest_problem p, Tensor Q, Tensor K, Tensor V, Tensor O, Tensor LSE) {
  const int64_t row = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
  if (row >= p.batch * p.num_heads_q * p.seqlen_q) return;
  const int64_t i = row % p.seqlen_q, h = row / p.seqlen_q % p.num_heads_q,
                b = row / p.seqlen_q / p.num_heads_q, g = h / (p.num_heads_q / p.num_heads_kv);
  float largest = -INFINITY, sum = 0;
  for (int64_t c = 0; c < p.head_dim_v; ++c) O(b, i, h, c) = 0;
  for (int64_t j = 0; j < p.seqlen_k; ++j) {
    float score = 0;
    for (int64_t c = 0; c < p.head_dim_qk; ++c) score += Q(b, i, h, c) * K(b, j, g, c);
    score *= (float)p.softmax_scale;
    const float before = largest;
    largest = fmaxf(before, score);
    const float rescale = expf(before - largest), weight = expf(score - largest);
    sum = sum * rescale + weight;
    for (int64_t c = 0; c < p.head_dim_v; ++c) {
      O(b, i, h, c) = O(b, i, h, c) * rescale + weight * V(b, j, g, c);
    }
  }
  for (int64_t c = 0; c < p.head_dim_v; ++c) O(b, i, h, c) /= sum;
  if (LSE.first != NULL) LSE(b, h, i) = largest + logf(sum);
}

static attest_status forward(const void *, const attest_forward_args *a) {
  const attest_problem *p = a->problem;
  const int64_t threads = 128, rows = p->batch * p->num_heads_q * p->seqlen_q;
  if (rows == 0) return ATTEST_OK;
  const unsigned blocks = (unsigned)((rows + threads - 1) / threads);
  attention<<<blocks, threads, 0, (cudaStream_t)a->stream>>>(
      *p, on_device(a->Q), on_device(a->K), on_device(a->V), on_device(a->O), on_device(a->LSE));
  return cudaPeekAtLastError() == cudaSuccess ? ATTEST_OK : ATTEST_FAILED;
}

extern "C" const attest_kernel *attest_get_kernel(uint32_t index) {
  static attest_kernel kernel = {};
  kernel.struct_size = sizeof kernel;
  kernel.abi_version = ATTEST_ABI_VERSION;
  kernel.description.struct_size = sizeof kernel.description;
  kernel.description.numerics.struct_size = sizeof kernel.description.numerics;
  kernel.description.name = "example/device_attention";
  kernel.description.summary = "a thread for each row, float32";
  kernel.description.device = ATTEST_CUDA;
  kernel.description.directions = ATTEST_FORWARD;
  kernel.description.dtypes = 1u << ATTEST_F32;
  kernel.description.features = ATTEST_GQA | ATTEST_HEAD_DIM_V | ATTEST_LSE | ATTEST_ANY_STRIDES |
                                ATTEST_CROSS_LENGTHS | ATTEST_ANY_SCALE;
  kernel.forward = forward;
  return index == 0 ? &kernel : NULL;
}
