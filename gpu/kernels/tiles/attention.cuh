#pragma once

#include <limits>

#include "gpu/simt/butterfly.cuh"
#include "gpu/simt/memory/traffic.hpp"

/// Before loops over arrays that are to stay in registers: nvcc leaves long ones as they are; and
/// before loops whose steps would need too many registers at once.
#ifdef __CUDACC__
#define ATTEST_UNROLL _Pragma("unroll")
#define ATTEST_ROLLED _Pragma("unroll 1")
#else
#define ATTEST_UNROLL
#define ATTEST_ROLLED
#endif

/// Shared parts of the attention kernels: their arguments, where sequences lie, which keys a query
/// sees, and how Q K^T becomes scores. Sequences and masks as core/abi/attest_kernel.h has them.
namespace attest::gpu {
inline namespace ATTEST_SIMT_WORLD {

/// In elements; of a packed tensor, `batch` is not used.
struct Strides {
  std::int64_t batch = 0, row = 0, head = 0, column = 0;
};

/// Extents of dBias, 1 along the axes that the bias does not depend on.
struct BiasExtents {
  std::int64_t batch = 0, heads = 0, queries = 0, keys = 0;

  __host__ __device__ std::int64_t elements() const { return batch * heads * queries * keys; }
};

/// Which key a query is aligned with: that of its own number, or the last with the last.
enum class Align : std::uint8_t { top_left, bottom_right };

/// Line i has indices[offsets[i]] .. indices[offsets[i + 1] - 1], ascending.
template <class Mem>
struct ListArguments {
  typename Mem::template In<std::int64_t> offsets;
  typename Mem::template In<std::int32_t> indices;
};

/// Masks that kernels read as they go. Pointers may be null.
template <class Mem>
struct MaskArguments {
  std::int64_t window_left = 0, window_right = 0;
  bool left_bounded = false, right_bounded = false;  // whether the window has these ends
  Align align = Align::top_left;
  typename Mem::template In<std::int32_t> key_lengths, query_lengths, cu_seqlens_q, cu_seqlens_k;
  typename Mem::template In<std::uint8_t> boolean, per_head;
  Strides head_strides;  // of per_head, (batch, row, head, key)
  /// Lists of a block mask: key blocks of a query block, and query blocks of a key block. Without
  /// one, all queries and keys are one block.
  ListArguments<Mem> by_query, by_key;
  std::int64_t block_q = std::numeric_limits<std::int64_t>::max(), block_k = block_q;
};

/// Pages of K and V: key j of batch entry b lies in row j % page_size of batch entry
/// table[b * max_pages + j / page_size] of the tensors. A null table: they are not paged.
template <class Mem>
struct PageArguments {
  typename Mem::template In<std::int32_t> table;
  std::int64_t page_size = 1, max_pages = 0;
};

struct AttentionShape {
  std::int64_t batch = 0, num_heads_q = 0, num_heads_kv = 0;
  std::int64_t seqlen_q = 0, seqlen_k = 0;
  int head_dim_qk = 0, head_dim_v = 0;
  float softmax_scale = 0, softcap = 0;
};

/// `T` is what memory holds of Q, K, V, O and their gradients: float, or a type of sixteen_bit.cuh.
template <class Mem, class T = float>
struct ForwardArguments {
  AttentionShape shape;
  MaskArguments<Mem> mask;
  typename Mem::template In<float> alibi_slopes, sinks;  // of each query head; may be null
  typename Mem::template In<float> bias;                 // (batch, row, head, key); may be null
  PageArguments<Mem> pages;
  typename Mem::template In<T> Q, K, V;
  typename Mem::template Out<T> O;
  typename Mem::template Out<float> LSE;  // may be null
  Strides q, k, v, o, lse, bias_strides;  // lse.column is not used
  typename Mem::Sink sink;
};

template <class Mem, class T = float>
struct BackwardArguments {
  AttentionShape shape;
  MaskArguments<Mem> mask;
  typename Mem::template In<float> alibi_slopes, sinks;  // of each query head; may be null
  typename Mem::template In<float> bias;                 // (batch, row, head, key); may be null
  typename Mem::template In<T> Q, K, V, O, dO;
  typename Mem::template In<float> LSE, dLSE;  // dLSE may be null
  typename Mem::template Out<T> dQ, dK, dV;
  typename Mem::template Out<float> dSinks;  // null without sinks
  typename Mem::template Out<float> dBias;   // null without a bias
  typename Mem::template Out<float> D;       // workspace: a word for each row of Q
  Strides q, k, v, o, d_o, dq, dk, dv, lse, dlse, d;
  std::int64_t dsinks = 0;  // elements from a head to the next
  Strides bias_strides, dbias;
  BiasExtents dbias_extents;
  typename Mem::Sink sink;
};

/// One sequence and what there is of it.
struct Sequence {
  std::int64_t batch = 0;  // in the tensors
  std::int64_t number = 0;
  std::int64_t q_begin = 0, q_length = 0, k_begin = 0, k_length = 0;
  std::int64_t keys = 0;     // that exist
  std::int64_t queries = 0;  // the same
  std::int64_t shift = 0;    // query i is aligned with key i + shift
};

/// Where row `position` of the tensor begins, of the sequence's batch entry and one head.
__device__ inline std::int64_t row_origin(const Strides& strides, const Sequence& sequence,
                                          std::int64_t head, std::int64_t position) {
  return sequence.batch * strides.batch + position * strides.row + head * strides.head;
}

template <class Mem>
__device__ Sequence sequence_of(Mem& mem, const AttentionShape& shape,
                                const MaskArguments<Mem>& mask, std::int64_t b) {
  Sequence sequence;
  sequence.batch = sequence.number = b;
  sequence.q_length = shape.seqlen_q;
  sequence.k_length = shape.seqlen_k;
  if (mask.cu_seqlens_q) {
    sequence.batch = 0;
    sequence.q_begin = mem.load(mask.cu_seqlens_q, b);
    sequence.q_length = mem.load(mask.cu_seqlens_q, b + 1) - sequence.q_begin;
    sequence.k_begin = mem.load(mask.cu_seqlens_k, b);
    sequence.k_length = mem.load(mask.cu_seqlens_k, b + 1) - sequence.k_begin;
  }
  sequence.keys = mask.key_lengths ? mem.load(mask.key_lengths, b) : sequence.k_length;
  sequence.queries = mask.query_lengths ? mem.load(mask.query_lengths, b) : sequence.q_length;
  sequence.shift = mask.align == Align::bottom_right ? sequence.keys - sequence.queries : 0;
  return sequence;
}

/// Rows of a tile.
struct TileRows {
  std::int64_t first = 0;
  int count = 0;
};

/// Keys begin .. end-1.
struct KeyBand {
  std::int64_t begin = 0, end = 0;

  __device__ bool holds(std::int64_t key) const { return begin <= key && key < end; }
  __device__ bool meets(TileRows keys) const {
    return begin < end && keys.first < end && begin < keys.first + keys.count;
  }
  /// The first key of the first tile that the band meets; `end` when it is empty.
  __device__ std::int64_t first_tile(int block) const {
    return begin < end ? begin / block * block : end;
  }
};

/// Returns the keys that window and lengths leave to query i.
template <class Mem>
__device__ KeyBand band_of(const Sequence& sequence, const MaskArguments<Mem>& mask,
                           std::int64_t i) {
  const std::int64_t aligned = i + sequence.shift;
  // Kernels without query lengths hide the rows past the last themselves.
  if (mask.query_lengths && i >= sequence.queries) return {0, 0};
  KeyBand band{0, sequence.keys};
  // Compared with what cannot overflow: widths may be near 2^63, on either side.
  if (mask.left_bounded && aligned > mask.window_left) {
    band.begin =
        mask.window_left > aligned - sequence.keys ? aligned - mask.window_left : sequence.keys;
  }
  if (mask.right_bounded && mask.window_right < sequence.keys - 1 - aligned) {
    band.end = mask.window_right < -aligned ? 0 : aligned + mask.window_right + 1;
  }
  if (band.end < band.begin) band.end = band.begin;
  return band;
}

/// The score of a visible pair and its derivative by the scaled product.
struct Score {
  float value = 0, derivative = 0;
};

/// Scale, softcap, ALiBi.
__device__ inline Score score_of(float product, const AttentionShape& shape, float slope,
                                 std::int64_t aligned, std::int64_t key) {
  Score score{shape.softmax_scale * product, 1};
  if (shape.softcap != 0) {
    const float capped = tanhf(score.value / shape.softcap);
    score = {shape.softcap * capped, 1 - capped * capped};
  }
  const std::int64_t distance = aligned < key ? key - aligned : aligned - key;
  if (slope != 0) score.value -= slope * static_cast<float>(distance);
  return score;
}

/// Tells whether the mask of heads leaves key j to query i of a head, where there is one.
template <class Mem>
__device__ bool shown_to_head(Mem& mem, const MaskArguments<Mem>& mask, const Sequence& sequence,
                              std::int64_t head, std::int64_t i, std::int64_t j) {
  if (!mask.per_head) return true;
  const Strides& strides = mask.head_strides;
  return mem.load(mask.per_head, sequence.number * strides.batch + head * strides.head +
                                     i * strides.row + j * strides.column) != 0;
}

/// Adds the bias of a pair to its score, where there is one.
template <class Mem, class Arguments>
__device__ void add_bias(Mem& mem, const Arguments& a, const Sequence& sequence, std::int64_t head,
                         std::int64_t i, std::int64_t j, float& score) {
  if (!a.bias) return;
  const Strides& strides = a.bias_strides;
  score += mem.load(a.bias, sequence.number * strides.batch + head * strides.head +
                                i * strides.row + j * strides.column);
}

__device__ inline int lane_in_warp() { return static_cast<int>(threadIdx.x) % 32; }
__device__ inline int warp_in_block() { return static_cast<int>(threadIdx.x) / 32; }

__device__ inline float warp_max(float value) { return simt::butterfly_max(value, 32); }
__device__ inline float warp_sum(float value) { return simt::butterfly_sum(value, 32); }

}  // namespace ATTEST_SIMT_WORLD
}  // namespace attest::gpu
