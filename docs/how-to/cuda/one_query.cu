// Attention forward, one warp for each query. nvcc compiles this file for a device, c++ for the
// host: one_query_plugin.cpp makes it a library for `attest certify`. Told in
// docs/how-to/cuda-without-a-gpu.md.
#include "gpu/simt/memory/traffic.hpp"

struct Strides {
  std::int64_t batch, row, head, column;
};

template <class Mem>
struct Arguments {
  int heads, queries, keys, head_dim_qk, head_dim_v;
  float scale;
  typename Mem::template In<float> Q, K, V;
  typename Mem::template Out<float> O;
  Strides q, k, v, o;
  typename Mem::Sink sink;
};

// Block (x, y): query x of head y % heads in batch entry y / heads. Weights of 32 keys at a time.
template <class Mem>
__global__ void one_query(Arguments<Mem> a) {
  Mem mem(a.sink);
  ATTEST_SHARED(float, weights, [32]);
  const int lane = static_cast<int>(threadIdx.x);
  const std::int64_t plane = blockIdx.y, batch = plane / a.heads, head = plane % a.heads;
  const std::int64_t q = batch * a.q.batch + blockIdx.x * a.q.row + head * a.q.head;
  const std::int64_t k = batch * a.k.batch + head * a.k.head;
  const std::int64_t v = batch * a.v.batch + head * a.v.head;
  const std::int64_t o = batch * a.o.batch + blockIdx.x * a.o.row + head * a.o.head;
  float m = -INFINITY, l = 0, rescales = 1;
  for (int first = 0; first < a.keys; first += 32) {
    float score = -INFINITY;
    if (first + lane < a.keys) {
      score = 0;
      for (int c = 0; c < a.head_dim_qk; ++c) {
        score += mem.load(a.Q, q + c * a.q.column) *
                 mem.load(a.K, k + (first + lane) * a.k.row + c * a.k.column);
      }
      score *= a.scale;
    }
    float maximum = fmaxf(m, score);
    for (int bits = 16; bits > 0; bits /= 2) {
      maximum = fmaxf(maximum, __shfl_xor_sync(~0U, maximum, bits));
    }
    const float weight = expf(score - maximum);
    float sum = weight;
    for (int bits = 16; bits > 0; bits /= 2) sum += __shfl_xor_sync(~0U, sum, bits);
    rescales = expf(m - maximum);
    l = l * rescales + sum;
    m = maximum;
    __syncwarp();  // the weights before have been read
    weights[lane] = weight;
    __syncwarp();
    for (int c = lane; c < a.head_dim_v; c += 32) {
      float part = first == 0 ? 0 : rescales * mem.load(a.O, o + c * a.o.column);
      for (int j = 0; j < 32 && first + j < a.keys; ++j) {
        part += weights[j] * mem.load(a.V, v + (first + j) * a.v.row + c * a.v.column);
      }
      mem.store(a.O, o + c * a.o.column, part);
    }
  }
  for (int c = lane; c < a.head_dim_v; c += 32) {
    mem.store(a.O, o + c * a.o.column, mem.load(a.O, o + c * a.o.column) / l);
  }
  mem.flush();
}
