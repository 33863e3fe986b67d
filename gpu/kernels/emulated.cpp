#include "gpu/kernels/emulated.hpp"

#include "gpu/kernels/arguments.cuh"
#include "gpu/kernels/tensor.hpp"

namespace attest::gpu {
namespace {

template <class T>
simt::GlobalPointer<T> add(simt::GlobalMemory& memory, const char* name,
                           const attest_tensor* tensor) {
  if (tensor == nullptr) return {};
  return memory.add(name, elements<T>(tensor), span_of(*tensor));
}

template <class T>
simt::GlobalPointer<const T> add(simt::GlobalMemory& memory, const char* name, const T* values,
                                 std::int64_t count) {
  if (values == nullptr) return {};
  return memory.add(name, values, count);
}

MaskArguments<simt::Counted> mask_of(simt::GlobalMemory& memory, const attest_problem& problem) {
  const attest_mask& mask = problem.mask;
  MaskArguments<simt::Counted> arguments;
  arguments.key_lengths = add(memory, "key_lengths", mask.key_lengths, problem.batch);
  arguments.cu_seqlens_q = add(memory, "cu_seqlens_q", mask.cu_seqlens_q, problem.batch + 1);
  arguments.cu_seqlens_k = add(memory, "cu_seqlens_k", mask.cu_seqlens_k, problem.batch + 1);
  arguments.boolean = add(memory, "boolean", mask.boolean, problem.seqlen_q * problem.seqlen_k);
  return arguments;
}

}  // namespace

EmulatedForward::EmulatedForward(const attest_forward_args& args) {
  const attest_problem& problem = *args.problem;
  arguments.Q = add<float>(memory, "Q", args.Q);
  arguments.K = add<float>(memory, "K", args.K);
  arguments.V = add<float>(memory, "V", args.V);
  arguments.O = add<float>(memory, "O", args.O);
  arguments.LSE = add<float>(memory, "LSE", args.LSE);
  arguments.mask = mask_of(memory, problem);
  arguments.alibi_slopes = add(memory, "alibi_slopes", problem.alibi_slopes, problem.num_heads_q);
  set_layout(arguments, args);
}

EmulatedBackward::EmulatedBackward(const attest_backward_args& args) {
  const attest_problem& problem = *args.problem;
  arguments.Q = add<float>(memory, "Q", args.Q);
  arguments.K = add<float>(memory, "K", args.K);
  arguments.V = add<float>(memory, "V", args.V);
  arguments.O = add<float>(memory, "O", args.O);
  arguments.LSE = add<float>(memory, "LSE", args.LSE);
  arguments.dO = add<float>(memory, "dO", args.dO);
  arguments.dLSE = add<float>(memory, "dLSE", args.dLSE);
  arguments.dQ = add<float>(memory, "dQ", args.dQ);
  arguments.dK = add<float>(memory, "dK", args.dK);
  arguments.dV = add<float>(memory, "dV", args.dV);
  arguments.D = memory.add("D", static_cast<float*>(args.workspace),
                           args.dO->shape[0] * args.dO->shape[2] * args.dO->shape[1]);
  arguments.mask = mask_of(memory, problem);
  arguments.alibi_slopes = add(memory, "alibi_slopes", problem.alibi_slopes, problem.num_heads_q);
  set_layout(arguments, args);
}

simt::GlobalTraffic traffic_of(const simt::GlobalMemory& memory, const simt::LaunchReport& report,
                               const char* name) {
  for (std::size_t k = 0; k < memory.ranges().size(); ++k) {
    const bool moved = k < report.traffic.size();  // nothing was launched
    if (moved && memory.ranges()[k].name == name) return report.traffic[k];
  }
  return {};
}

}  // namespace attest::gpu
