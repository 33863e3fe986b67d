#pragma once

#include "gpu/device/kernels/call.cuh"
#include "gpu/kernels/split_kv/split_kv.cuh"

namespace attest::gpu::cuda {

/// The workspace of the parts of a call.
template <class Call>
SplitParts<typename Call::Mem> take_parts(Call& call) {
  float* const O = call.take(SplitKv::kSplits * call.o_words());
  float* const LSE = call.take(SplitKv::kSplits * call.lse_words());
  return {O, LSE, call.o_strides(), call.lse_strides(), call.o_words(), call.lse_words()};
}

}  // namespace attest::gpu::cuda
