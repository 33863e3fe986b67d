#pragma once

#include "core/abi/attest_kernel.h"
#include "gpu/kernels/tiles/attention.cuh"

/// From the ABI's structs to the arguments of the attention kernels, all but the pointers.
namespace attest::gpu {
inline namespace ATTEST_SIMT_WORLD {

/// (batch, row, head, column)
inline Strides strides_of(const attest_tensor& tensor) {
  return {tensor.strides[0], tensor.strides[1], tensor.strides[2], tensor.strides[3]};
}

/// Returns the strides of a bias, (batch, head, row, key), and of dBias.
inline Strides bias_strides_of(const attest_tensor* tensor) {
  if (tensor == nullptr) return {};
  return {tensor->strides[0], tensor->strides[2], tensor->strides[1], tensor->strides[3]};
}

/// Returns the strides of LSE and its like, (batch, head, row).
inline Strides row_strides_of(const attest_tensor* tensor) {
  if (tensor == nullptr) return {};
  return {tensor->strides[0], tensor->strides[2], tensor->strides[1], 0};
}

inline AttentionShape shape_of(const attest_problem& problem) {
  AttentionShape shape;
  shape.batch = problem.batch;
  shape.num_heads_q = problem.num_heads_q;
  shape.num_heads_kv = problem.num_heads_kv;
  shape.seqlen_q = problem.seqlen_q;
  shape.seqlen_k = problem.seqlen_k;
  shape.head_dim_qk = static_cast<int>(problem.head_dim_qk);
  shape.head_dim_v = static_cast<int>(problem.head_dim_v);
  shape.softmax_scale = static_cast<float>(problem.softmax_scale);
  shape.softcap = static_cast<float>(problem.softcap);
  return shape;
}

/// Words of a matrix for each query head.
inline std::int64_t pairs_of(const AttentionShape& shape) {
  return shape.batch * shape.num_heads_q * shape.seqlen_q * shape.seqlen_k;
}

template <class Mem>
void set_window(MaskArguments<Mem>& arguments, const attest_mask& mask) {
  const attest_window_ends* const ends = mask.window_ends;
  arguments.window_left = mask.window_left;
  arguments.window_right = mask.window_right;
  arguments.left_bounded = ends != nullptr ? ends->left_unbounded == 0 : mask.window_left >= 0;
  arguments.right_bounded = ends != nullptr ? ends->right_unbounded == 0 : mask.window_right >= 0;
  if (mask.per_head != nullptr) {
    const std::int64_t* const strides = mask.per_head->strides;
    arguments.head_strides = {strides[0], strides[2], strides[1], strides[3]};
  }
  arguments.align = mask.align == ATTEST_BOTTOM_RIGHT ? Align::bottom_right : Align::top_left;
  if (mask.blocks == nullptr) return;
  arguments.block_q = mask.blocks->block_q;
  arguments.block_k = mask.blocks->block_k;
}

/// Rows like those of O and LSE, packed one after another: (batch, head, row).
struct PackedRows {
  std::int64_t batch_rows = 0, rows = 0;  // of a batch entry, in all
  std::int64_t heads = 0, columns = 0;

  explicit PackedRows(const attest_tensor& O)
      : batch_rows(O.shape[1]),
        rows(O.shape[0] * O.shape[1]),
        heads(O.shape[2]),
        columns(O.shape[3]) {}
  std::int64_t lse_words() const { return rows * heads; }
  std::int64_t o_words() const { return lse_words() * columns; }
  Strides lse_strides() const { return {heads * batch_rows, 1, batch_rows, 0}; }
  Strides o_strides() const {
    return {heads * batch_rows * columns, columns, batch_rows * columns, 1};
  }
};

/// Shape, window, extents of blocks and strides.
template <class Mem, class T>
void set_layout(ForwardArguments<Mem, T>& arguments, const attest_forward_args& args) {
  arguments.shape = shape_of(*args.problem);
  set_window(arguments.mask, args.problem->mask);
  arguments.q = strides_of(*args.Q);
  arguments.k = strides_of(*args.K);
  arguments.v = strides_of(*args.V);
  arguments.o = strides_of(*args.O);
  arguments.lse = row_strides_of(args.LSE);
  arguments.bias_strides = bias_strides_of(args.bias);
}

/// The same; D is packed, (batch, head, row) of dO.
template <class Mem, class T>
void set_layout(BackwardArguments<Mem, T>& arguments, const attest_backward_args& args) {
  arguments.shape = shape_of(*args.problem);
  set_window(arguments.mask, args.problem->mask);
  arguments.q = strides_of(*args.Q);
  arguments.k = strides_of(*args.K);
  arguments.v = strides_of(*args.V);
  arguments.o = strides_of(*args.O);
  arguments.d_o = strides_of(*args.dO);
  arguments.dq = strides_of(*args.dQ);
  arguments.dk = strides_of(*args.dK);
  arguments.dv = strides_of(*args.dV);
  arguments.lse = row_strides_of(args.LSE);
  arguments.dlse = row_strides_of(args.dLSE);
  if (args.dSinks != nullptr) arguments.dsinks = args.dSinks->strides[0];
  arguments.bias_strides = bias_strides_of(args.bias);
  arguments.dbias = bias_strides_of(args.dBias);
  if (args.dBias != nullptr) {
    const std::int64_t* const extents = args.dBias->shape;
    arguments.dbias_extents = {extents[0], extents[1], extents[2], extents[3]};
  }
  const std::int64_t heads = args.dO->shape[2], rows = args.dO->shape[1];
  arguments.d = {heads * rows, 1, rows, 0};
}

}  // namespace ATTEST_SIMT_WORLD
}  // namespace attest::gpu
