#include "gpu/kernels/emulated.hpp"

#include <string>

#include "core/error.hpp"
#include "core/sparsity/blocks_of.hpp"
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

ListArguments<simt::Counted> add(simt::GlobalMemory& memory, const std::string& name,
                                 const attest_lists& lists, std::int64_t lines) {
  return {memory.add(name + " offsets", lists.offsets, lines + 1),
          memory.add(name + " indices", lists.indices, lists.offsets[lines])};
}

MaskArguments<simt::Counted> mask_of(simt::GlobalMemory& memory, const attest_problem& problem) {
  const attest_mask& mask = problem.mask;
  MaskArguments<simt::Counted> arguments;
  arguments.key_lengths = add(memory, "key_lengths", mask.key_lengths, problem.batch);
  arguments.cu_seqlens_q = add(memory, "cu_seqlens_q", mask.cu_seqlens_q, problem.batch + 1);
  arguments.cu_seqlens_k = add(memory, "cu_seqlens_k", mask.cu_seqlens_k, problem.batch + 1);
  arguments.boolean = add(memory, "boolean", mask.boolean, problem.seqlen_q * problem.seqlen_k);
  if (const attest_block_mask* const blocks = mask.blocks; blocks != nullptr) {
    arguments.by_query =
        add(memory, "by_query", blocks->by_query, blocks_of(problem.seqlen_q, blocks->block_q));
    arguments.by_key =
        add(memory, "by_key", blocks->by_key, blocks_of(problem.seqlen_k, blocks->block_k));
  }
  return arguments;
}

// What Q, K, V and O are made of.
template <class T, class Arguments, class Args>
void add_inputs(simt::GlobalMemory& memory, const Args& args, Arguments& arguments) {
  arguments.Q = add<T>(memory, "Q", args.Q);
  arguments.K = add<T>(memory, "K", args.K);
  arguments.V = add<T>(memory, "V", args.V);
  arguments.O = add<T>(memory, "O", args.O);
}

// And their gradients.
template <class T, class Arguments>
void add_gradients(simt::GlobalMemory& memory, const attest_backward_args& args,
                   Arguments& arguments) {
  arguments.dO = add<T>(memory, "dO", args.dO);
  arguments.dQ = add<T>(memory, "dQ", args.dQ);
  arguments.dK = add<T>(memory, "dK", args.dK);
  arguments.dV = add<T>(memory, "dV", args.dV);
}

// What both directions have of any type of these.
template <class Arguments, class Args>
void add_common(simt::GlobalMemory& memory, const Args& args, Arguments& arguments) {
  const attest_problem& problem = *args.problem;
  arguments.mask = mask_of(memory, problem);
  arguments.alibi_slopes = add(memory, "alibi_slopes", problem.alibi_slopes, problem.num_heads_q);
  arguments.LSE = add<float>(memory, "LSE", args.LSE);
  set_layout(arguments, args);
}

}  // namespace

std::int64_t tensor_rows(const attest_problem& problem) {
  const std::int32_t* const packed = problem.mask.cu_seqlens_q;
  return packed != nullptr ? packed[problem.batch] : problem.batch * problem.seqlen_q;
}

simt::GlobalPointer<float> Workspace::take(simt::GlobalMemory& memory, const char* name,
                                           std::int64_t words) {
  const auto taken = static_cast<std::size_t>(words);
  if (taken > left_) {
    throw InternalError(std::string("workspace: ") + name + " needs " + std::to_string(taken) +
                        " words, but " + std::to_string(left_) + " are left");
  }
  float* const data = next_;
  if (data != nullptr) next_ += taken;
  left_ -= taken;
  return memory.add(name, data, words);
}

EmulatedForward::EmulatedForward(const attest_forward_args& args)
    : PackedRows(*args.O), workspace(args.workspace, args.workspace_bytes), args_(args) {
  add_common(memory, args, arguments);
  if (args.problem->dtype == ATTEST_F32) add_inputs<float>(memory, args, arguments);
}

template <class T>
ForwardArguments<simt::Counted, T> EmulatedForward::sixteen_bit() {
  ForwardArguments<simt::Counted, T> typed;
  typed.mask = arguments.mask;
  typed.alibi_slopes = arguments.alibi_slopes;
  typed.LSE = arguments.LSE;
  set_layout(typed, args_);
  add_inputs<T>(memory, args_, typed);
  return typed;
}
template ForwardArguments<simt::Counted, Bf16> EmulatedForward::sixteen_bit();
template ForwardArguments<simt::Counted, F16> EmulatedForward::sixteen_bit();

void EmulatedForward::require_LSE() {
  if (arguments.LSE) return;
  arguments.LSE = take("LSE", lse_words());
  arguments.lse = lse_strides();
}

EmulatedBackward::EmulatedBackward(const attest_backward_args& args)
    : workspace(args.workspace, args.workspace_bytes), args_(args) {
  add_common(memory, args, arguments);
  arguments.dLSE = add<float>(memory, "dLSE", args.dLSE);
  arguments.D = take("D", delta_words(*args.problem));
  if (args.problem->dtype != ATTEST_F32) return;
  add_inputs<float>(memory, args, arguments);
  add_gradients<float>(memory, args, arguments);
}

template <class T>
BackwardArguments<simt::Counted, T> EmulatedBackward::sixteen_bit() {
  BackwardArguments<simt::Counted, T> typed;
  typed.mask = arguments.mask;
  typed.alibi_slopes = arguments.alibi_slopes;
  typed.LSE = arguments.LSE;
  typed.dLSE = arguments.dLSE;
  typed.D = arguments.D;
  set_layout(typed, args_);
  add_inputs<T>(memory, args_, typed);
  add_gradients<T>(memory, args_, typed);
  return typed;
}
template BackwardArguments<simt::Counted, Bf16> EmulatedBackward::sixteen_bit();
template BackwardArguments<simt::Counted, F16> EmulatedBackward::sixteen_bit();

std::int64_t delta_words(const attest_problem& problem) {
  return tensor_rows(problem) * problem.num_heads_q;
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
