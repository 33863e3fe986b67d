#pragma once

#include "gpu/kernels/tiles/backward_lines.cuh"
#include "gpu/kernels/two_pass/two_pass_tensor_core.cuh"

/// FlashAttention-2's backward on tensor cores, of tensors in bf16 or f16: key blocks stay with dK
/// and dV, dQ is summed in global memory, in float32, by atomic additions, whose order changes its
/// bits from call to call on a device. P and dS are rounded to the tensors' type for their
/// products.
///
/// Grid:   a warp for each row of a (batch, query head); a block for each 64 keys of a (batch, key
///         head), which goes through the query heads of its group; a warp for each row again.
/// Shared: as the second of two passes (two_pass_tensor_core.cuh), and dS (64, 32).
/// Words:  of the schedule key_stationary:bq=32,bk=64, an atomic addition being a read and a write.
///         In addition the sums of a query that sees keys are first written as zero and read once
///         more; all are read to be rounded, and written as dQ; a group reads K and V once and
///         leaves no partial sums.  [gpu/kernels/key_stationary/key_stationary_tensor_core_test
///         "words"]
/// Source: Dao 2023, Algorithm 2.
namespace attest::gpu {
inline namespace ATTEST_SIMT_WORLD {

template <class Mem, class T>
struct KeyStationarySums {
  BackwardArguments<Mem, T> call;
  typename Mem::template Out<float> dQ;  // before its scale, rows as those of D

  __host__ __device__ Strides strides() const {
    const Strides& d = call.d;
    const int columns = call.shape.head_dim_qk;
    return {d.batch * columns, d.row * columns, d.head * columns, 1};
  }
};

/// D = rowsum(dO o O) - dLSE and zeros in the sums of dQ.
template <class T, class Mem>
__global__ void __launch_bounds__(Deltas::kLanes)
    key_stationary_tensor_core_prepare(KeyStationarySums<Mem, T> a) {
  Mem mem(a.call.sink);
  const DeltaRow row = delta_row(mem, a.call);
  if (row.exists()) {
    store_delta(mem, a.call, row);
    const std::int64_t origin = row.origin(a.strides());
    for (int c = lane_in_warp(); c < a.call.shape.head_dim_qk; c += 32) {
      mem.store(a.dQ, origin + c, 0.0F);
    }
  }
  mem.flush();
}

/// dQ from its sums.
template <class T, class Mem>
__global__ void __launch_bounds__(Deltas::kLanes)
    key_stationary_tensor_core_finish(KeyStationarySums<Mem, T> a) {
  Mem mem(a.call.sink);
  const DeltaRow row = delta_row(mem, a.call);
  if (row.exists()) {
    const std::int64_t from = row.origin(a.strides()), to = row.origin(a.call.dq);
    for (int c = lane_in_warp(); c < a.call.shape.head_dim_qk; c += 32) {
      mem.store(a.call.dQ, to + c * a.call.dq.column,
                rounded<T>(a.call.shape.softmax_scale * mem.load(a.dQ, from + c)));
    }
  }
  mem.flush();
}

/// dS of a block's keys and the passing queries, as rows of pair_rows.cuh.
template <class Tile>
struct SharedPairGradients {
  static constexpr int kStride = Tile::kPassing / 2 + 4, kWords = Tile::kResident * kStride;
};

/// The sums of passing queries += dS^T K, each word added once, atomically. A warp has 16 of the
/// queries and some of the columns.
template <class Tile, class T, class Mem>
__device__ void add_query_gradients(Mem& mem, const KeyStationarySums<Mem, T>& a,
                                    const Sequence& sequence, const PassTiles<Tile>& tiles,
                                    PassingQueries at, int queries,
                                    const float (&dS)[Tile::kPairs][4], unsigned* shared) {
  constexpr int kStride = SharedPairGradients<Tile>::kStride;
  constexpr int kRowWarps = Tile::kPassing / 16, kColumns = Tile::kColumns / 2;
  static_assert(Tile::kRowWarps == 2 * kRowWarps && kColumns % 16 == 0);
  if (warp_column<Tile>() == 0) {
    ATTEST_UNROLL
    for (int k = 0; k < Tile::kPairs; ++k) {
      unsigned* const words = shared + (warp_row<Tile>() + fragment_row(0)) * kStride +
                              (8 * k + fragment_column(0)) / 2;
      words[0] = TensorCore<T>::pair(dS[k][0], dS[k][1]);
      words[8 * kStride] = TensorCore<T>::pair(dS[k][2], dS[k][3]);
    }
  }
  Tile::await_pair_gradients();
  const int first_row = warp_in_block() % kRowWarps * 16,
            first_column = warp_in_block() / kRowWarps * kColumns;
  const int columns = a.call.shape.head_dim_qk;
  const Strides strides = a.strides();
  const std::int64_t origin =
      row_origin(strides, sequence, at.head, sequence.q_begin + at.first + first_row);
  ATTEST_UNROLL
  for (int c = 0; c < kColumns; c += 16) {
    const int column = first_column + c;
    if (column >= columns) break;
    float sums[2][4];
    clear_fragments(sums);
    ATTEST_UNROLL
    for (int key = 0; key < Tile::kResident; key += 16) {
      unsigned left[4], right[4];
      Tile::load_columns(left, shared + key * kStride, kStride, first_row);
      load_right(right, tiles.resident_k + key * tiles.stride_k, tiles.stride_k, column);
      add_two<T>(sums[0], sums[1], left, right);
    }
    ATTEST_UNROLL
    for (int part = 0; part < 2; ++part) {
      ATTEST_UNROLL
      for (int w = 0; w < 4; ++w) {
        const int row = fragment_row(w), at_column = column + 8 * part + fragment_column(w);
        if (first_row + row >= queries || at_column >= columns) continue;
        mem.add(a.dQ, origin + row * strides.row + at_column, sums[part][w]);
      }
    }
  }
}

/// dK and dV; the sums of dQ by additions to what key_stationary_tensor_core_prepare left.
template <class Tile, class T, class Mem>
__global__ void __launch_bounds__(Tile::kLanes, 1)
    key_stationary_tensor_core_keys(KeyStationarySums<Mem, T> a) {
  Mem mem(a.call.sink);
  ATTEST_DYNAMIC_SHARED(unsigned, shared);
  const BlockPlace place =
      place_of_block(blockIdx.x, a.call.shape.seqlen_k, Tile::kResident, a.call.shape.num_heads_kv);
  const Sequence sequence = sequence_of(mem, a.call.shape, a.call.mask, place.batch);
  if (place.first < sequence.k_length) {
    const TileRows resident = rows_from(place.first, sequence.k_length, Tile::kResident);
    unsigned* const dS_shared = shared + two_pass_shared_words(Tile{}, a.call.shape);
    sum_over_queries<Tile>(mem, a.call, sequence, place.head, resident,
                           [&](const PassTiles<Tile>& tiles, PassingQueries at, int queries,
                               const float(&dS)[Tile::kPairs][4]) {
                             add_query_gradients(mem, a, sequence, tiles, at, queries, dS,
                                                 dS_shared);
                           });
  }
  mem.flush();
}

/// launch(name, line, kernel, arguments...) for the three launches in turn with one tile.
template <class Tile, class Mem, class T, class Launch>
void key_stationary_tensor_core_launches(const Tile& tile, const KeyStationarySums<Mem, T>& a,
                                         Launch&& launch) {
  const AttentionShape& shape = a.call.shape;
  launch(kernel_name("key_stationary_tensor_core_prepare", name_of_type<T>()), delta_line(shape),
         key_stationary_tensor_core_prepare<T, Mem>, a);
  const std::int64_t words = two_pass_shared_words(tile, shape) + SharedPairGradients<Tile>::kWords;
  launch(kernel_name("key_stationary_tensor_core_keys", Tile::name(), name_of_type<T>()),
         BlockLine{blocks_for(shape.seqlen_k, Tile::kResident, shape.num_heads_kv, shape.batch),
                   Tile::kLanes, bytes_of_floats(words)},
         key_stationary_tensor_core_keys<Tile, T, Mem>, a);
  launch(kernel_name("key_stationary_tensor_core_finish", name_of_type<T>()), delta_line(shape),
         key_stationary_tensor_core_finish<T, Mem>, a);
}

}  // namespace ATTEST_SIMT_WORLD
}  // namespace attest::gpu
