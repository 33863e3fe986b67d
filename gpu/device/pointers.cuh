#pragma once

#include "gpu/device/kernels.hpp"
#include "gpu/kernels/arguments.cuh"
#include "gpu/kernels/tensor.hpp"

/// The pointers of a call whose tensors lie on the device.
namespace attest::gpu::cuda {

inline void set_sink(simt::Uncounted::Sink&, TrafficSink) {}
inline void set_sink(simt::Counted::Sink& sink, TrafficSink bytes) { sink.bytes = bytes; }

template <class Mem>
void set_mask_pointers(MaskArguments<Mem>& arguments, const attest_mask& mask) {
  arguments.key_lengths = mask.key_lengths;
  arguments.cu_seqlens_q = mask.cu_seqlens_q;
  arguments.cu_seqlens_k = mask.cu_seqlens_k;
  arguments.boolean = mask.boolean;
}

template <class Mem>
ForwardArguments<Mem> arguments_of(const attest_forward_args& args, TrafficSink sink) {
  ForwardArguments<Mem> a{};
  set_layout(a, args);
  set_mask_pointers(a.mask, args.problem->mask);
  a.alibi_slopes = args.problem->alibi_slopes;
  a.Q = elements<float>(args.Q);
  a.K = elements<float>(args.K);
  a.V = elements<float>(args.V);
  a.O = elements<float>(args.O);
  a.LSE = elements<float>(args.LSE);
  set_sink(a.sink, sink);
  return a;
}

template <class Mem>
BackwardArguments<Mem> arguments_of(const attest_backward_args& args, TrafficSink sink) {
  BackwardArguments<Mem> a{};
  set_layout(a, args);
  set_mask_pointers(a.mask, args.problem->mask);
  a.alibi_slopes = args.problem->alibi_slopes;
  a.Q = elements<float>(args.Q);
  a.K = elements<float>(args.K);
  a.V = elements<float>(args.V);
  a.O = elements<float>(args.O);
  a.LSE = elements<float>(args.LSE);
  a.dO = elements<float>(args.dO);
  a.dLSE = elements<float>(args.dLSE);
  a.dQ = elements<float>(args.dQ);
  a.dK = elements<float>(args.dK);
  a.dV = elements<float>(args.dV);
  a.D = static_cast<float*>(args.workspace);
  set_sink(a.sink, sink);
  return a;
}

}  // namespace attest::gpu::cuda
