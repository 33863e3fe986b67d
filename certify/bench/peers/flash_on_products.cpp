#include "certify/bench/peers/flash_on_products.hpp"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "certify/bench/peers/lane_softmax.hpp"
#include "core/features/score_features.hpp"

namespace attest::certify {
namespace {

constexpr std::int64_t kQueries = 192, kKeys = 96;  // of a tile
constexpr float kHidden = -std::numeric_limits<float>::infinity();

bool is_supported(const attest_problem& p) {
  const attest_mask& m = p.mask;
  return p.dtype == ATTEST_F32 && !asks_score_feature(p) && m.window_left < 0 &&
         m.window_right <= 0 && m.key_lengths == nullptr && m.cu_seqlens_q == nullptr &&
         m.boolean == nullptr && p.seqlen_q > 0 && p.seqlen_k > 0;
}

// The first row of a head of a (batch, seqlen, heads, dim) tensor.
float* head_of(const attest_tensor& t, std::int64_t b, std::int64_t head) {
  auto* const data = reinterpret_cast<float*>(static_cast<char*>(t.data) + t.byte_offset);
  return data + b * t.strides[0] + head * t.strides[2];
}

std::int64_t lanes_of(std::int64_t queries) {
  return (queries + kLaneStep - 1) / kLaneStep * kLaneStep;
}

std::int64_t thread_floats(const attest_problem& p) {
  return kQueries * (p.head_dim_qk + p.head_dim_v + kKeys + 2) + 16;
}

std::size_t workspace_bytes(const void*, const attest_problem* problem, std::uint32_t) {
  return static_cast<std::size_t>(thread_floats(*problem) * std::max(problem->num_threads, 1)) *
         sizeof(float);
}

// Keys that query i sees: all, or those up to the diagonal.
std::int64_t keys_of(const attest_problem& p, std::int64_t i) {
  if (p.mask.window_right < 0) return p.seqlen_k;
  const std::int64_t shift = p.mask.align == ATTEST_BOTTOM_RIGHT ? p.seqlen_k - p.seqlen_q : 0;
  return std::clamp<std::int64_t>(i + shift + 1, 0, p.seqlen_k);
}

struct Block {
  std::int64_t b, head, first, count;
};

// Scores S(keys, lanes) above the diagonal become -inf.
void hide(const attest_problem& p, const Block& block, std::int64_t key, std::int64_t keys,
          float* S) {
  if (keys_of(p, block.first) >= key + keys) return;
  for (std::int64_t i = 0; i < block.count; ++i) {
    const std::int64_t seen = std::max<std::int64_t>(keys_of(p, block.first + i) - key, 0);
    for (std::int64_t j = seen; j < keys; ++j) S[j * lanes_of(block.count) + i] = kHidden;
  }
}

bool attend(const PeerLibrary& library, const attest_forward_args& args, const Block& block,
            float* space) {
  const attest_problem& p = *args.problem;
  const std::int64_t d = p.head_dim_qk, dv = p.head_dim_v, lanes = lanes_of(block.count);
  float *const Q = space, *const O = Q + lanes * d, *const S = O + lanes * dv,
               *const m = S + lanes * kKeys, *const l = m + lanes;
  const float* const rows =
      head_of(*args.Q, block.b, block.head) + block.first * args.Q->strides[1];
  const auto scale = static_cast<float>(p.softmax_scale);
  std::fill(Q, Q + lanes * d, 0.0f);
  for (std::int64_t i = 0; i < block.count; ++i) {
    for (std::int64_t c = 0; c < d; ++c)
      Q[c * lanes + i] = rows[i * args.Q->strides[1] + c] * scale;
  }
  std::fill(O, O + lanes * dv, 0.0f);
  std::fill(m, m + lanes, kHidden);
  std::fill(l, l + lanes, 0.0f);
  const std::int64_t kv_head = block.head / (p.num_heads_q / p.num_heads_kv);
  const float *const K = head_of(*args.K, block.b, kv_head), *const V =
                                                                 head_of(*args.V, block.b, kv_head);
  const auto k_stride = static_cast<int>(args.K->strides[1]),
             v_stride = static_cast<int>(args.V->strides[1]), width = static_cast<int>(lanes);
  const std::int64_t end = keys_of(p, block.first + block.count - 1);
  for (std::int64_t key = 0; key < end; key += kKeys) {
    const auto keys = static_cast<int>(std::min(kKeys, p.seqlen_k - key));
    if (!library.multiply({false, false, width, keys, static_cast<int>(d), Q, width,
                           K + key * k_stride, k_stride, S, width})) {
      return false;
    }
    hide(p, block, key, keys, S);
    update_lanes({O, m, l, dv, lanes}, keys, S);
    if (!library.multiply({true, true, width, static_cast<int>(dv), keys, S, width,
                           V + key * v_stride, v_stride, O, width})) {
      return false;
    }
  }
  float* const out = head_of(*args.O, block.b, block.head) + block.first * args.O->strides[1];
  for (std::int64_t i = 0; i < block.count; ++i) {
    const float factor = l[i] == 0 ? 0.0f : 1.0f / l[i];
    for (std::int64_t c = 0; c < dv; ++c)
      out[i * args.O->strides[1] + c] = O[c * lanes + i] * factor;
    if (args.LSE == nullptr) continue;
    const attest_tensor& t = *args.LSE;
    auto* const lse = reinterpret_cast<float*>(static_cast<char*>(t.data) + t.byte_offset);
    lse[block.b * t.strides[0] + block.head * t.strides[1] + (block.first + i) * t.strides[2]] =
        m[i] + std::log(l[i]);
  }
  return true;
}

attest_status forward(const void* self, const attest_forward_args* args) {
  const attest_problem& p = *args->problem;
  if (!is_supported(p)) return ATTEST_UNSUPPORTED;
  const auto& library = *static_cast<const PeerLibrary*>(self);
  const std::int64_t blocks = (p.seqlen_q + kQueries - 1) / kQueries;
  std::atomic<bool> done{true};
#pragma omp parallel num_threads(p.num_threads)
  {
    omp_set_num_threads(1);  // of the library's own regions
    float* const space =
        static_cast<float*>(args->workspace) + thread_floats(p) * omp_get_thread_num();
#pragma omp for collapse(3) schedule(dynamic)
    for (std::int64_t b = 0; b < p.batch; ++b) {
      for (std::int64_t head = 0; head < p.num_heads_q; ++head) {
        for (std::int64_t turn = 0; turn < blocks; ++turn) {  // the longest of a causal mask first
          const std::int64_t first = (blocks - 1 - turn) * kQueries;
          const Block block{b, head, first, std::min(kQueries, p.seqlen_q - first)};
          if (!attend(library, *args, block, space)) done = false;
        }
      }
    }
  }
  return done ? ATTEST_OK : ATTEST_FAILED;
}

}  // namespace

attest_kernel flash_on(PeerLibrary& library) {
  attest_kernel k{};
  k.struct_size = sizeof k;
  k.abi_version = ATTEST_ABI_VERSION;
  k.self = &library;
  k.description.struct_size = sizeof k.description;
  k.description.name = library.name;
  k.description.summary = library.summary;
  k.description.device = ATTEST_CPU;
  k.description.directions = ATTEST_FORWARD;
  k.description.dtypes = 1u << ATTEST_F32;
  k.description.features = ATTEST_LSE | ATTEST_CROSS_LENGTHS | ATTEST_HEAD_DIM_V | ATTEST_GQA |
                           ATTEST_CAUSAL_TOP_LEFT | ATTEST_CAUSAL_BOTTOM_RIGHT;
  k.description.empty_row = ATTEST_ZERO_NEG_INF;
  k.description.numerics.struct_size = sizeof k.description.numerics;
  k.workspace_bytes = workspace_bytes;
  k.forward = forward;
  return k;
}

}  // namespace attest::certify
