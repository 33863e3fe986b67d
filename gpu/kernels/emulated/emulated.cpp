#include "gpu/kernels/emulated/emulated.hpp"

#include <string>

#include "core/error.hpp"
#include "core/features/head_mask_array.hpp"
#include "core/mask/sparsity/blocks_of.hpp"
#include "gpu/kernels/tiles/tensor.hpp"

namespace attest::gpu {
namespace {

// Adds what the kernel only reads as such: races are looked for in the rest.
template <class T>
void add(simt::GlobalMemory& memory, const char* name, const attest_tensor* tensor,
         simt::GlobalPointer<T>& pointer) {
  if (tensor != nullptr) pointer = memory.add(name, elements<T>(tensor), span_of(*tensor));
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
  arguments.query_lengths = add(memory, "query_lengths", mask.query_lengths, problem.batch);
  if (mask.per_head != nullptr) {
    arguments.per_head = add(memory, "per_head", mask.per_head->visible, head_mask_span(problem));
  }
  arguments.boolean = add(memory, "boolean", mask.boolean, problem.seqlen_q * problem.seqlen_k);
  if (const attest_block_mask* const blocks = mask.blocks; blocks != nullptr) {
    arguments.by_query =
        add(memory, "by_query", blocks->by_query, blocks_of(problem.seqlen_q, blocks->block_q));
    arguments.by_key =
        add(memory, "by_key", blocks->by_key, blocks_of(problem.seqlen_k, blocks->block_k));
  }
  return arguments;
}

PageArguments<simt::Counted> pages_of(simt::GlobalMemory& memory, const attest_problem& problem) {
  const attest_paged_kv* const paged = problem.paged_kv;
  if (paged == nullptr) return {};
  return {add(memory, "block_table", paged->block_table, problem.batch * paged->max_pages),
          paged->page_size, paged->max_pages};
}

// Adds Q, K, V and O.
template <class Arguments, class Args>
void add_inputs(simt::GlobalMemory& memory, const Args& args, Arguments& arguments) {
  add(memory, "Q", args.Q, arguments.Q);
  add(memory, "K", args.K, arguments.K);
  add(memory, "V", args.V, arguments.V);
  add(memory, "O", args.O, arguments.O);
}

// And their gradients.
template <class Arguments>
void add_gradients(simt::GlobalMemory& memory, const attest_backward_args& args,
                   Arguments& arguments) {
  add(memory, "dO", args.dO, arguments.dO);
  add(memory, "dQ", args.dQ, arguments.dQ);
  add(memory, "dK", args.dK, arguments.dK);
  add(memory, "dV", args.dV, arguments.dV);
}

// Adds what both directions have, of any type of these.
template <class Arguments, class Args>
void add_common(simt::GlobalMemory& memory, const Args& args, Arguments& arguments) {
  const attest_problem& problem = *args.problem;
  arguments.mask = mask_of(memory, problem);
  arguments.alibi_slopes = add(memory, "alibi_slopes", problem.alibi_slopes, problem.num_heads_q);
  arguments.sinks = add(memory, "sinks", problem.sinks, problem.num_heads_q);
  if (args.bias != nullptr && args.bias->dtype.bits == 32) {
    add(memory, "bias", args.bias, arguments.bias);
  }
  add(memory, "LSE", args.LSE, arguments.LSE);
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
  arguments.pages = pages_of(memory, *args.problem);
  if (args.problem->dtype == ATTEST_F32) add_inputs(memory, args, arguments);
}

template <class T>
ForwardArguments<simt::Counted, T> EmulatedForward::typed() {
  ForwardArguments<simt::Counted, T> typed;
  typed.mask = arguments.mask;
  typed.alibi_slopes = arguments.alibi_slopes;
  typed.sinks = arguments.sinks;
  typed.bias = arguments.bias;
  typed.pages = arguments.pages;
  typed.LSE = arguments.LSE;
  set_layout(typed, args_);
  typed.lse = arguments.lse;
  add_inputs(memory, args_, typed);
  return typed;
}
template <>
ForwardArguments<simt::Counted> EmulatedForward::typed() {
  return arguments;
}
template ForwardArguments<simt::Counted, Bf16> EmulatedForward::typed();
template ForwardArguments<simt::Counted, F16> EmulatedForward::typed();

void EmulatedForward::require_LSE() {
  if (arguments.LSE) return;
  arguments.LSE = take("LSE", lse_words());
  arguments.lse = lse_strides();
}

EmulatedBackward::EmulatedBackward(const attest_backward_args& args)
    : workspace(args.workspace, args.workspace_bytes), args_(args) {
  add_common(memory, args, arguments);
  add(memory, "dLSE", args.dLSE, arguments.dLSE);
  add(memory, "dSinks", args.dSinks, arguments.dSinks);
  if (arguments.bias) add(memory, "dBias", args.dBias, arguments.dBias);
  arguments.D = take("D", delta_words(*args.problem));
  if (args.problem->dtype != ATTEST_F32) return;
  add_inputs(memory, args, arguments);
  add_gradients(memory, args, arguments);
}

template <class T>
BackwardArguments<simt::Counted, T> EmulatedBackward::typed() {
  BackwardArguments<simt::Counted, T> typed;
  typed.mask = arguments.mask;
  typed.alibi_slopes = arguments.alibi_slopes;
  typed.sinks = arguments.sinks;
  typed.bias = arguments.bias;
  typed.LSE = arguments.LSE;
  typed.dLSE = arguments.dLSE;
  typed.dSinks = arguments.dSinks;
  typed.dBias = arguments.dBias;
  typed.D = arguments.D;
  set_layout(typed, args_);
  add_inputs(memory, args_, typed);
  add_gradients(memory, args_, typed);
  return typed;
}
template <>
BackwardArguments<simt::Counted> EmulatedBackward::typed() {
  return arguments;
}
template BackwardArguments<simt::Counted, Bf16> EmulatedBackward::typed();
template BackwardArguments<simt::Counted, F16> EmulatedBackward::typed();

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
