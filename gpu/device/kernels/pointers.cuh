#pragma once

#include "gpu/device/kernels.hpp"
#include "gpu/kernels/loss/loss.cuh"
#include "gpu/kernels/tiles/arguments.cuh"
#include "gpu/kernels/tiles/tensor.hpp"

/// The pointers of a call whose tensors lie on the device, all but the workspace's.
namespace attest::gpu::cuda {

inline void set_sink(simt::Uncounted::Sink&, TrafficSink) {}
inline void set_sink(simt::Counted::Sink& sink, TrafficSink bytes) { sink.bytes = bytes; }

/// Sets what both directions have.
template <class T, class Arguments, class Args>
void set_common(Arguments& a, const Args& args, TrafficSink sink) {
  const attest_mask& mask = args.problem->mask;
  set_layout(a, args);
  a.mask.key_lengths = mask.key_lengths;
  a.mask.cu_seqlens_q = mask.cu_seqlens_q;
  a.mask.cu_seqlens_k = mask.cu_seqlens_k;
  a.mask.query_lengths = mask.query_lengths;
  a.mask.boolean = mask.boolean;
  if (mask.per_head != nullptr) a.mask.per_head = mask.per_head->visible;
  if (mask.blocks != nullptr) {
    a.mask.by_query = {mask.blocks->by_query.offsets, mask.blocks->by_query.indices};
    a.mask.by_key = {mask.blocks->by_key.offsets, mask.blocks->by_key.indices};
  }
  a.alibi_slopes = args.problem->alibi_slopes;
  a.sinks = args.problem->sinks;
  if (args.bias != nullptr && args.bias->dtype.bits == 32) a.bias = elements<float>(args.bias);
  a.Q = elements<T>(args.Q);
  a.K = elements<T>(args.K);
  a.V = elements<T>(args.V);
  a.O = elements<T>(args.O);
  a.LSE = elements<float>(args.LSE);
  set_sink(a.sink, sink);
}

template <class Mem, class T>
ForwardArguments<Mem, T> arguments_of(const attest_forward_args& args, TrafficSink sink) {
  ForwardArguments<Mem, T> a{};
  set_common<T>(a, args, sink);
  if (const attest_paged_kv* const paged = args.problem->paged_kv; paged != nullptr) {
    a.pages.table = paged->block_table;
    a.pages.page_size = paged->page_size;
    a.pages.max_pages = paged->max_pages;
  }
  return a;
}

template <class Mem, class T>
BackwardArguments<Mem, T> arguments_of(const attest_backward_args& args, TrafficSink sink) {
  BackwardArguments<Mem, T> a{};
  set_common<T>(a, args, sink);
  a.dO = elements<T>(args.dO);
  a.dLSE = elements<float>(args.dLSE);
  a.dQ = elements<T>(args.dQ);
  a.dK = elements<T>(args.dK);
  a.dV = elements<T>(args.dV);
  a.dSinks = elements<float>(args.dSinks);
  if (a.bias) a.dBias = elements<float>(args.dBias);
  return a;
}

template <class Matrix>
void set_matrix(Matrix& matrix, const attest_tensor* tensor) {
  if (tensor == nullptr) return;
  matrix.data = elements<float>(tensor);
  matrix.row = tensor->strides[0];
  matrix.column = tensor->strides[1];
}

template <class Mem>
LossArguments<Mem> arguments_of(const attest_loss_args& args, TrafficSink sink) {
  LossArguments<Mem> a{};
  a.n = args.problem->seqlen_q;
  a.d = static_cast<int>(args.problem->head_dim_qk);
  set_matrix(a.A1, args.A1);
  set_matrix(a.A2, args.A2);
  set_matrix(a.A3, args.A3);
  set_matrix(a.E, args.E);
  set_matrix(a.X, args.X);
  set_matrix(a.Y, args.Y);
  set_matrix(a.dX, args.dX);
  set_matrix(a.dY, args.dY);
  set_sink(a.sink, sink);
  return a;
}

}  // namespace attest::gpu::cuda
