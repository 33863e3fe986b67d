#pragma once

#include <algorithm>

#include "gpu/kernels/tiles/fragments.cuh"
#include "gpu/kernels/tiles/grid.hpp"

/// Attention backward in two passes on tensor cores, of tensors in bf16 or f16: one with query
/// blocks resident for dQ, one with key blocks resident for dK and dV; the next passing block is
/// under way while one is used. P and dS are rounded to the tensors' type for their products, sums
/// are float32. No atomic addition: equal calls give equal bits.
///
/// Grid:   a block for each 64 queries of a (batch, query head), then one for each 64 keys of a
///         (batch, key head), which goes through the query heads of its group.
/// Shared: both resident (64) and, twice, both passing (32) tensors, rows of pair_rows.cuh. Sums go
///         out through the resident ones.
/// Words:  of the schedule two_pass:bq=64,bk=32,cq=32,ck=64, but for groups: a group reads K and V
///         once in the second pass and leaves no partial sums.
///         [gpu/kernels/two_pass/two_pass_tensor_core_test "words"]
/// Source: Dao 2023, section 3.1.2 (differs: two passes in place of atomic additions).
namespace attest::gpu {
inline namespace ATTEST_SIMT_WORLD {

/// Returns the words of a block, in either pass.
template <class Tile>
__host__ __device__ std::int64_t two_pass_shared_words(const Tile&, const AttentionShape& shape) {
  return std::int64_t{Tile::kResident + Tile::kStages * Tile::kPassing} *
         (pair_stride(shape.head_dim_qk) + pair_stride(shape.head_dim_v));
}

/// The tensors of a pass in shared memory: two of each kind, as wide as head_dim_qk and head_dim_v.
template <class Tile>
struct PassTiles {
  int stride_k, stride_v;
  unsigned *resident_k, *resident_v, *passing_k, *passing_v;

  __device__ PassTiles(const AttentionShape& shape, unsigned* shared)
      : stride_k(pair_stride(shape.head_dim_qk)), stride_v(pair_stride(shape.head_dim_v)) {
    resident_k = shared;
    resident_v = resident_k + Tile::kResident * stride_k;
    passing_k = resident_v + Tile::kResident * stride_v;
    passing_v = passing_k + Tile::kStages * Tile::kPassing * stride_k;
  }
  __device__ unsigned* stage_k(int stage) const {
    return passing_k + stage * Tile::kPassing * stride_k;
  }
  __device__ unsigned* stage_v(int stage) const {
    return passing_v + stage * Tile::kPassing * stride_v;
  }
};

/// Products of the warp's resident rows with the passing ones, of both widths: scores before their
/// scale, and dP or its transpose.
template <class Tile, class T>
__device__ void pass_products(const PassTiles<Tile>& tiles, const AttentionShape& shape, int stage,
                              float (&S)[Tile::kPairs][4], float (&dP)[Tile::kPairs][4]) {
  const auto rows_of = [](const unsigned* resident, int stride) {
    return [=](int column, unsigned(&a)[4]) {
      load_left(a, resident + warp_row<Tile>() * stride, stride, column);
    };
  };
  clear_fragments(S);
  clear_fragments(dP);
  add_pair_products<Tile, T>(rows_of(tiles.resident_k, tiles.stride_k), tiles.stage_k(stage),
                             shape.head_dim_qk, S);
  add_pair_products<Tile, T>(rows_of(tiles.resident_v, tiles.stride_v), tiles.stage_v(stage),
                             shape.head_dim_v, dP);
}

/// A product and dP of a visible pair become P and dS, the scale of scores left out.
__device__ inline void weigh_pair(const AttentionShape& shape, float slope, std::int64_t aligned,
                                  std::int64_t key, float LSE, float D, float& S, float& dP) {
  const Score score = score_of(S, shape, slope, aligned, key);
  S = expf(score.value - LSE);
  dP = S * (dP - D) * score.derivative;
}

/// D of the block's rows, dO in shared memory and O passing; a warp takes every so many rows.
template <class T, class Mem>
__device__ void form_pair_deltas(Mem& mem, const BackwardArguments<Mem, T>& a,
                                 const QueryBlock& block, const unsigned* dO, int stride,
                                 float* D) {
  for (int row = warp_in_block(); row < block.rows.count;
       row += static_cast<int>(blockDim.x) / 32) {
    const std::int64_t origin = block.origin(a.o) + row * a.o.row;
    float sum = 0;
    for (int c = lane_in_warp(); c < a.shape.head_dim_v; c += 32) {
      sum += to_float(element_of<T>(dO + row * stride, c)) *
             to_float(mem.load(a.O, origin + c * a.o.column));
    }
    sum = warp_sum(sum);
    if (lane_in_warp() != 0) continue;
    if (a.dLSE) sum -= mem.load(a.dLSE, block.origin(a.dlse) + row * a.dlse.row);
    mem.store(a.D, block.origin(a.d) + row * a.d.row, sum);
    D[row] = sum;
  }
}

/// dQ and D of a block's queries.
template <class Tile, class T, class Mem>
__device__ void sum_over_keys(Mem& mem, const BackwardArguments<Mem, T>& a,
                              const QueryBlock& block) {
  ATTEST_DYNAMIC_SHARED(unsigned, shared);
  ATTEST_SHARED(float, LSE, [Tile::kResident]);
  ATTEST_SHARED(float, D, [Tile::kResident]);
  const PassTiles<Tile> tiles(a.shape, shared);
  const int dk = a.shape.head_dim_qk, dv = a.shape.head_dim_v, rows = block.rows.count;
  const float slope = a.alibi_slopes ? mem.load(a.alibi_slopes, block.head) : 0;
  const std::int64_t origin_k = block.key_origin(a.k), origin_v = block.key_origin(a.v);
  const KeyBand band = band_of_rows(block.sequence, a.mask, block.rows);
  const auto begin = [&](std::int64_t key, int stage) {
    const int count = rows_from(key, block.sequence.k_length, Tile::kPassing).count;
    copy_rows<Tile::kPassing>(mem, a.K, a.k, origin_k + key * a.k.row, count, dk,
                              tiles.stage_k(stage));
    copy_rows<Tile::kPassing>(mem, a.V, a.v, origin_v + key * a.v.row, count, dv,
                              tiles.stage_v(stage));
    simt::cp_async_commit();
  };
  const auto visible_from = [&](std::int64_t key) {
    return visible_keys<Tile>(mem, a.shape, a.mask, block.sequence, block.rows, band, key);
  };

  std::int64_t key = visible_from(band.first_tile(Tile::kPassing));
  copy_rows<Tile::kResident>(mem, a.dO, a.d_o, block.origin(a.d_o), rows, dv, tiles.resident_v);
  simt::cp_async_commit();
  if (key < band.end) {
    copy_rows<Tile::kResident>(mem, a.Q, a.q, block.origin(a.q), rows, dk, tiles.resident_k);
    const int row = static_cast<int>(threadIdx.x);
    if (row < rows) LSE[row] = mem.load(a.LSE, block.origin(a.lse) + row * a.lse.row);
    begin(key, 0);
  }
  Tile::await_tile();
  form_pair_deltas(mem, a, block, tiles.resident_v, tiles.stride_v, D);

  float dQ[Tile::kSums][4];
  clear_fragments(dQ);
  for (int stage = 0; key < band.end; stage = Tile::next_stage(stage)) {
    const std::int64_t next = visible_from(key + Tile::kPassing);
    Tile::await_tile();
    if (next < band.end) begin(next, Tile::next_stage(stage));
    float S[Tile::kPairs][4], dS[Tile::kPairs][4];
    pass_products<Tile, T>(tiles, a.shape, stage, S, dS);
    ATTEST_UNROLL
    for (int half = 0; half < 2; ++half) {
      const int row = warp_row<Tile>() + fragment_row(2 * half);
      const std::int64_t i = block.rows.first + row;
      KeyBand of_row;
      if (row < rows && LSE[row] != -INFINITY) of_row = band_of(block.sequence, a.mask, i);
      const PassingBand seen = passing_band<Tile>(of_row, key);
      ATTEST_UNROLL
      for (int k = 0; k < Tile::kPairs; ++k) {
        ATTEST_UNROLL
        for (int w = 2 * half; w < 2 * half + 2; ++w) {
          const int column = 8 * k + fragment_column(w);
          const bool visible = Tile::sees(seen.begin, seen.end, column) &&
                               (!a.mask.boolean ||
                                mem.load(a.mask.boolean, i * a.shape.seqlen_k + key + column) != 0);
          if (visible) {
            weigh_pair(a.shape, slope, i + block.sequence.shift, key + column, LSE[row], D[row],
                       S[k][w], dS[k][w]);
          } else {
            dS[k][w] = 0;
          }
        }
      }
    }
    add_weighted_passing<Tile, T>(dS, tiles.stage_k(stage), dk, dQ);
    key = next;
  }
  __syncthreads();  // Q is no longer read
  leave_sums<Tile, T>(dQ, a.shape.softmax_scale, a.shape.softmax_scale, dk, tiles.resident_k,
                      tiles.stride_k);
  __syncthreads();
  store_pairs<T>(mem, a.dQ, a.dq, block.origin(a.dq), rows, dk, tiles.resident_k, tiles.stride_k);
}

/// Queries that pass, of one head of the group.
struct PassingQueries {
  std::int64_t head = 0, first = 0;
};

/// The first from `at` on, before `last_head`, of which one sees a resident key; head `last_head`
/// when there are none.
template <class Tile, class Mem, class T>
__device__ PassingQueries visible_queries(Mem& mem, const BackwardArguments<Mem, T>& a,
                                          const Sequence& sequence, TileRows resident,
                                          std::int64_t last_head, PassingQueries at) {
  for (; at.head < last_head; at = {at.head + 1, 0}) {
    for (; at.first < sequence.q_length; at.first += Tile::kPassing) {
      const TileRows queries = rows_from(at.first, sequence.q_length, Tile::kPassing);
      if (band_of_rows(sequence, a.mask, queries).meets(resident) &&
          (!a.mask.boolean || tile_visible(mem, a.shape, a.mask, sequence, queries, resident))) {
        return at;
      }
    }
  }
  return at;
}

/// Nothing is done with dS beside the sums over queries.
struct PairGradientsPass {
  template <class... Arguments>
  __device__ void operator()(const Arguments&...) const {}
};

/// dK and dV of a block's keys, summed over the query heads of the group. D is read. Each tile of
/// dS (keys, queries) is shown to see(tiles, passing queries, their count, dS).
template <class Tile, class T, class Mem, class See = PairGradientsPass>
__device__ void sum_over_queries(Mem& mem, const BackwardArguments<Mem, T>& a,
                                 const Sequence& sequence, std::int64_t head_kv, TileRows resident,
                                 const See& see = {}) {
  ATTEST_DYNAMIC_SHARED(unsigned, shared);
  ATTEST_SHARED(float, LSE, [Tile::kStages][Tile::kPassing]);
  ATTEST_SHARED(float, D, [Tile::kStages][Tile::kPassing]);
  const PassTiles<Tile> tiles(a.shape, shared);
  const int dk = a.shape.head_dim_qk, dv = a.shape.head_dim_v;
  const std::int64_t group = a.shape.num_heads_q / a.shape.num_heads_kv;
  const std::int64_t last_head = (head_kv + 1) * group;
  const auto of_keys = [&](const Strides& strides) {
    return row_origin(strides, sequence, head_kv, sequence.k_begin + resident.first);
  };
  const auto begin = [&](PassingQueries at, int stage) {
    const int count = rows_from(at.first, sequence.q_length, Tile::kPassing).count;
    const auto of_queries = [&](const Strides& strides) {
      return row_origin(strides, sequence, at.head, sequence.q_begin + at.first);
    };
    copy_rows<Tile::kPassing>(mem, a.Q, a.q, of_queries(a.q), count, dk, tiles.stage_k(stage));
    copy_rows<Tile::kPassing>(mem, a.dO, a.d_o, of_queries(a.d_o), count, dv, tiles.stage_v(stage));
    const int row = static_cast<int>(threadIdx.x);
    if (row < count) {
      simt::cp_async_4(&LSE[stage][row], mem, a.LSE, of_queries(a.lse) + row * a.lse.row);
      simt::cp_async_4(&D[stage][row], mem, a.D, of_queries(a.d) + row * a.d.row);
    }
    simt::cp_async_commit();
  };
  const auto visible_from = [&](PassingQueries at) {
    return visible_queries<Tile>(mem, a, sequence, resident, last_head, at);
  };

  float dK[Tile::kSums][4], dV[Tile::kSums][4];
  clear_fragments(dK);
  clear_fragments(dV);
  PassingQueries at = visible_from({head_kv * group, 0});
  if (at.head < last_head) {
    copy_rows<Tile::kResident>(mem, a.K, a.k, of_keys(a.k), resident.count, dk, tiles.resident_k);
    copy_rows<Tile::kResident>(mem, a.V, a.v, of_keys(a.v), resident.count, dv, tiles.resident_v);
    begin(at, 0);
  }
  for (int stage = 0; at.head < last_head; stage = Tile::next_stage(stage)) {
    const PassingQueries next = visible_from({at.head, at.first + Tile::kPassing});
    Tile::await_tile();
    if (next.head < last_head) begin(next, Tile::next_stage(stage));
    const float slope = a.alibi_slopes ? mem.load(a.alibi_slopes, at.head) : 0;
    const int rows = rows_from(at.first, sequence.q_length, Tile::kPassing).count;
    float P[Tile::kPairs][4], dS[Tile::kPairs][4];
    pass_products<Tile, T>(tiles, a.shape, stage, P, dS);
    ATTEST_UNROLL
    for (int k = 0; k < Tile::kPairs; ++k) {
      ATTEST_UNROLL
      for (int part = 0; part < 2; ++part) {
        const int column = 8 * k + fragment_column(part);
        const std::int64_t i = at.first + column;
        const bool exists = Tile::sees(0, rows, column) && LSE[stage][column] != -INFINITY;
        KeyBand band;
        if (exists) band = band_of(sequence, a.mask, i);
        ATTEST_UNROLL
        for (int w = part; w < 4; w += 2) {
          const std::int64_t j = resident.first + warp_row<Tile>() + fragment_row(w);
          const bool visible =
              band.holds(j) &&
              (!a.mask.boolean || mem.load(a.mask.boolean, i * a.shape.seqlen_k + j) != 0);
          if (visible) {
            weigh_pair(a.shape, slope, i + sequence.shift, j, LSE[stage][column], D[stage][column],
                       P[k][w], dS[k][w]);
          } else {
            P[k][w] = dS[k][w] = 0;
          }
        }
      }
    }
    add_weighted_passing<Tile, T>(P, tiles.stage_v(stage), dv, dV);
    add_weighted_passing<Tile, T>(dS, tiles.stage_k(stage), dk, dK);
    see(tiles, at, rows, dS);
    at = next;
  }
  __syncthreads();  // K and V are no longer read
  leave_sums<Tile, T>(dK, a.shape.softmax_scale, a.shape.softmax_scale, dk, tiles.resident_k,
                      tiles.stride_k);
  leave_sums<Tile, T>(dV, 1, 1, dv, tiles.resident_v, tiles.stride_v);
  __syncthreads();
  store_pairs<T>(mem, a.dK, a.dk, of_keys(a.dk), resident.count, dk, tiles.resident_k,
                 tiles.stride_k);
  store_pairs<T>(mem, a.dV, a.dv, of_keys(a.dv), resident.count, dv, tiles.resident_v,
                 tiles.stride_v);
}

/// dQ and D.
template <class Tile, class T, class Mem>
__global__ void __launch_bounds__(Tile::kLanes, 1)
    two_pass_tensor_core_queries(BackwardArguments<Mem, T> a) {
  Mem mem(a.sink);
  const QueryBlock block = query_block(mem, a.shape, a.mask, blockIdx.x, Tile::kResident);
  if (block.rows.count > 0) sum_over_keys<Tile>(mem, a, block);
  mem.flush();
}

/// dK and dV, after two_pass_tensor_core_queries.
template <class Tile, class T, class Mem>
__global__ void __launch_bounds__(Tile::kLanes, 1)
    two_pass_tensor_core_keys(BackwardArguments<Mem, T> a) {
  Mem mem(a.sink);
  const BlockPlace place =
      place_of_block(blockIdx.x, a.shape.seqlen_k, Tile::kResident, a.shape.num_heads_kv);
  const Sequence sequence = sequence_of(mem, a.shape, a.mask, place.batch);
  if (place.first < sequence.k_length) {
    const TileRows resident = rows_from(place.first, sequence.k_length, Tile::kResident);
    sum_over_queries<Tile>(mem, a, sequence, place.head, resident);
  }
  mem.flush();
}

/// launch(name, line, kernel, arguments...) for both passes in turn with one tile.
template <class Tile, class Mem, class T, class Launch>
void two_pass_tensor_core_launches(const Tile& tile, const BackwardArguments<Mem, T>& a,
                                   Launch&& launch) {
  const AttentionShape& shape = a.shape;
  const std::int64_t bytes = bytes_of_floats(two_pass_shared_words(tile, shape));
  launch(kernel_name("two_pass_tensor_core_queries", Tile::name(), name_of_type<T>()),
         BlockLine{blocks_for(shape.seqlen_q, Tile::kResident, shape.num_heads_q, shape.batch),
                   Tile::kLanes, bytes},
         two_pass_tensor_core_queries<Tile, T, Mem>, a);
  launch(kernel_name("two_pass_tensor_core_keys", Tile::name(), name_of_type<T>()),
         BlockLine{blocks_for(shape.seqlen_k, Tile::kResident, shape.num_heads_kv, shape.batch),
                   Tile::kLanes, bytes},
         two_pass_tensor_core_keys<Tile, T, Mem>, a);
}

}  // namespace ATTEST_SIMT_WORLD
}  // namespace attest::gpu
