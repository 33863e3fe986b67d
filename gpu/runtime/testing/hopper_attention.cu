// Attention by a warpgroup, forward, bfloat16 with heads of 64: tensor copies bring K and V one
// tile ahead, wgmma multiplies, P stays in registers. A library that nvcc compiles for compute_90a.
#include <algorithm>
#include <cmath>

#include "core/abi/attest_kernel.h"
#include "gpu/simt/async/tensor_copy.cuh"
#include "gpu/simt/tensor_core/warpgroup.cuh"

using namespace attest::simt;

namespace {

constexpr int kTile = 64, kColumns = 64, kStages = 2, kLanes = 128;
constexpr int kTileBytes = kTile * kColumns * 2;
constexpr int kSharedBytes = (1 + 2 * kStages) * kTileBytes;

struct Rows {  // of one head
  std::uint16_t* first;
  int count;
  std::int64_t stride;
};

struct Head {
  std::uint16_t* O;
  float* LSE;  // or null
  std::int64_t stride, lse_stride;
  int queries, keys;
  float scale;
};

__device__ unsigned pair(float low, float high) {
  unsigned bits;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
  return bits;
}

__device__ float over_row(float value, bool is_sum) {
  for (int step = 1; step < 4; step *= 2) {
    const float other = __shfl_xor_sync(~0U, value, step);
    value = is_sum ? value + other : fmaxf(value, other);
  }
  return value;
}

__global__ void __launch_bounds__(kLanes)
    attention(const __grid_constant__ TensorMap Q, const __grid_constant__ TensorMap K,
              const __grid_constant__ TensorMap V, Head head) {
  ATTEST_DYNAMIC_SHARED(unsigned char, q);
  ATTEST_SHARED(std::uint64_t, full, [kStages]);
  Uncounted mem({});
  const int lane = threadIdx.x, first_row = blockIdx.x * kTile;
  const int tiles = (head.keys + kTile - 1) / kTile;
  const auto k_tile = [&](int stage) { return q + (1 + 2 * stage) * kTileBytes; };
  const auto load = [&](int tile) {
    const int stage = tile % kStages;
    mbarrier_arrive_expect_tx(&full[stage], (tile == 0 ? 3 : 2) * kTileBytes);
    if (tile == 0) cp_async_bulk_tensor_2d(q, mem, Q, 0, first_row, &full[0]);
    cp_async_bulk_tensor_2d(k_tile(stage), mem, K, 0, tile * kTile, &full[stage]);
    cp_async_bulk_tensor_2d(k_tile(stage) + kTileBytes, mem, V, 0, tile * kTile, &full[stage]);
  };
  if (lane == 0) {
    for (auto& each : full) mbarrier_init(&each, 1);
    fence_mbarrier_init();
    load(0);
  }
  __syncthreads();
  float o[kColumns / 2] = {}, largest[2] = {-INFINITY, -INFINITY}, sum[2] = {};
  for (int tile = 0; tile < tiles; ++tile) {
    const int stage = tile % kStages;
    if (lane == 0 && tile + 1 < tiles) load(tile + 1);
    mbarrier_wait(&full[stage], tile / kStages % 2);
    const unsigned char* const k = k_tile(stage);
    float s[kTile / 2];
    wgmma_fence();
    for (int c = 0; c < kColumns; c += 16) {
      wgmma_bf16<kTile, Major::k, Major::k>(
          s, matrix_descriptor(q + 2 * c, 16, 1024, Swizzle::bytes_128),
          matrix_descriptor(k + 2 * c, 16, 1024, Swizzle::bytes_128), c > 0);
    }
    wgmma_commit();
    wgmma_wait<0>();
    for (int half = 0; half < 2; ++half) {
      float most = largest[half];
      for (int n = 0; n < kTile / 2; ++n) {
        if (n / 2 % 2 != half) continue;
        const int key = tile * kTile + n / 4 * 8 + lane % 4 * 2 + n % 2;
        s[n] = key < head.keys ? s[n] * head.scale : -INFINITY;
        most = fmaxf(most, s[n]);
      }
      most = over_row(most, false);
      const float rescale = expf(largest[half] - most);
      largest[half] = most;
      sum[half] *= rescale;
      for (int n = 0; n < kTile / 2; ++n) {
        if (n / 2 % 2 != half) continue;
        s[n] = expf(s[n] - most);
        sum[half] += s[n];
        o[n] *= rescale;
      }
    }
    unsigned p[kTile / 16][4];
    for (int c = 0; c < kTile / 16; ++c) {
      for (int j = 0; j < 4; ++j) p[c][j] = pair(s[8 * c + 2 * j], s[8 * c + 2 * j + 1]);
    }
    wgmma_fence();
    for (int c = 0; c < kTile / 16; ++c) {
      wgmma_bf16<kColumns, Major::rows>(
          o, p[c], matrix_descriptor(k + kTileBytes + 2048 * c, 16, 1024, Swizzle::bytes_128),
          true);
    }
    wgmma_commit();
    wgmma_wait<0>();
    __syncthreads();  // the tile may be overwritten
  }
  for (int half = 0; half < 2; ++half) {
    const float all = over_row(sum[half], true);
    const int row = first_row + lane / 32 * 16 + lane % 32 / 4 + 8 * half;
    if (row >= head.queries) continue;
    for (int n = 2 * half; n < kColumns / 2; n += 4) {
      const unsigned both = pair(o[n] / all, o[n + 1] / all);
      std::uint16_t* const to = head.O + row * head.stride + n / 4 * 8 + lane % 4 * 2;
      to[0] = static_cast<std::uint16_t>(both);
      to[1] = static_cast<std::uint16_t>(both >> 16);
    }
    if (head.LSE != nullptr && lane % 4 == 0) {
      head.LSE[row * head.lse_stride] = largest[half] + logf(all);
    }
  }
}

// Tensor copies take rows at multiples of 16 bytes alone.
__global__ void pack(Rows from, std::uint16_t* to) {
  const int k = blockIdx.x * kLanes + threadIdx.x;
  if (k < from.count * kColumns) to[k] = from.first[k / kColumns * from.stride + k % kColumns];
}

bool needs_packing(const Rows& rows) {
  return rows.stride % 8 != 0 || reinterpret_cast<std::uintptr_t>(rows.first) % 16 != 0;
}

Rows rows_of(const attest_tensor& t, std::int64_t batch, std::int64_t head) {
  char* const first = static_cast<char*>(t.data) + t.byte_offset;
  return {reinterpret_cast<std::uint16_t*>(first) + batch * t.strides[0] + head * t.strides[2],
          static_cast<int>(t.shape[1]), t.strides[1]};
}

TensorMap map_of(const Rows& rows) {
  TensorShape shape;
  shape.extents[0] = shape.box[0] = kColumns;
  shape.extents[1] = rows.count;
  shape.box[1] = kTile;
  shape.stride_bytes[0] = rows.stride * 2;
  shape.swizzle = Swizzle::bytes_128;
  return map_tensor(rows.first, shape);
}

// A map of rows, or of their copy at the workspace's next place.
TensorMap packed(const Rows& rows, std::uint16_t*& place, cudaStream_t stream) {
  if (!needs_packing(rows)) return map_of(rows);
  const Rows copy{place, rows.count, kColumns};
  place += rows.count * kColumns;
  pack<<<(rows.count * kColumns + kLanes - 1) / kLanes, kLanes, 0, stream>>>(rows, copy.first);
  return map_of(copy);
}

std::size_t workspace_bytes(const void*, const attest_problem* p, std::uint32_t) {
  return static_cast<std::size_t>(p->seqlen_q + 2 * p->seqlen_k) * kColumns * 2;
}

attest_status forward(const void*, const attest_forward_args* a) {
  const attest_problem& p = *a->problem;
  auto* const stream = static_cast<cudaStream_t>(a->stream);
  cudaFuncSetAttribute(attention, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
  for (std::int64_t b = 0; b < p.batch; ++b) {
    for (std::int64_t h = 0; h < p.num_heads_q; ++h) {
      const std::int64_t g = h / (p.num_heads_q / p.num_heads_kv);
      const Rows O = rows_of(*a->O, b, h);
      Head head{O.first,
                nullptr,
                O.stride,
                0,
                static_cast<int>(p.seqlen_q),
                static_cast<int>(p.seqlen_k),
                static_cast<float>(p.softmax_scale)};
      if (const attest_tensor* const t = a->LSE) {
        char* const first = static_cast<char*>(t->data) + t->byte_offset;
        head.LSE = reinterpret_cast<float*>(first) + b * t->strides[0] + h * t->strides[1];
        head.lse_stride = t->strides[2];
      }
      const auto blocks = static_cast<unsigned>((p.seqlen_q + kTile - 1) / kTile);
      auto* place = static_cast<std::uint16_t*>(a->workspace);
      const auto map = [&](const attest_tensor& t, std::int64_t of) {
        return packed(rows_of(t, b, of), place, stream);
      };
      const TensorMap Q = map(*a->Q, h), K = map(*a->K, g), V = map(*a->V, g);
      attention<<<blocks, kLanes, kSharedBytes, stream>>>(Q, K, V, head);
    }
  }
  return cudaPeekAtLastError() == cudaSuccess ? ATTEST_OK : ATTEST_FAILED;
}

}  // namespace

extern "C" const attest_kernel* attest_get_kernel(std::uint32_t index) {
  static attest_limits limits{};
  limits.struct_size = sizeof limits;
  limits.head_dims[0] = kColumns;
  static attest_kernel kernel{};
  kernel.struct_size = sizeof kernel;
  kernel.abi_version = ATTEST_ABI_VERSION;
  attest_description& d = kernel.description;
  d.struct_size = sizeof d;
  d.name = "hopper/attention";
  d.summary = "a warpgroup for 64 rows, tensor copies, wgmma";
  d.device = ATTEST_CUDA;
  d.directions = ATTEST_FORWARD;
  d.dtypes = 1U << ATTEST_BF16;
  d.features = ATTEST_GQA | ATTEST_LSE | ATTEST_CROSS_LENGTHS | ATTEST_ANY_SCALE;
  d.numerics.struct_size = sizeof d.numerics;
  d.numerics.accumulation = ATTEST_FUSED_BLOCKS;
  d.numerics.fused_block = 8;
  d.numerics.fused_fraction_bits = 24;
  d.numerics.p_cast = 1 + ATTEST_BF16;
  d.limits = &limits;
  kernel.forward = forward;
  kernel.workspace_bytes = workspace_bytes;
  return index == 0 ? &kernel : nullptr;
}
