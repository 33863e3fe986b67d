#include "cpu/kernels/kernel.hpp"

#include <algorithm>
#include <limits>
#include <string>

#include "cpu/kernels/flash2/flash2.hpp"
#include "cpu/kernels/vectors/panels.hpp"

namespace attest::cpu {
namespace {

template <Terms kTerms>
attest_status takes(const attest_problem& problem) {
  const bool is_bf16 = problem.dtype == ATTEST_BF16;
  return kTerms == Terms::pairs && !is_bf16 ? ATTEST_UNSUPPORTED : supported(problem);
}

template <Terms kTerms>
std::size_t workspace_bytes(const void*, const attest_problem* problem, std::uint32_t direction) {
  const std::int64_t floats = direction == ATTEST_BACKWARD
                                  ? flash2_backward_floats(*problem)
                                  : flash2_forward_floats(*problem, kTerms);
  return static_cast<std::size_t>(floats) * sizeof(float);
}

template <Terms kTerms>
attest_status forward(const void*, const attest_forward_args* args) {
  if (takes<kTerms>(*args->problem) != ATTEST_OK) return ATTEST_UNSUPPORTED;
  flash2_forward(*args, nullptr, kTerms);
  return ATTEST_OK;
}

template <Terms kTerms>
attest_status backward(const void*, const attest_backward_args* args) {
  const bool paged = args->problem->paged_kv != nullptr;
  if (paged || takes<kTerms>(*args->problem) != ATTEST_OK) return ATTEST_UNSUPPORTED;
  flash2_backward(*args);
  return ATTEST_OK;
}

template <Terms kTerms>
attest_kernel kernel_with(const char* name, const char* summary) {
  static const std::string schedule =
      "flash2:bq=" + std::to_string(kBlockQ) + ",bk=" + std::to_string(kBlockK);
  static const std::string backward_schedule =
      "key_stationary:bq=" + std::to_string(kPanelLanes) + ",bk=" + std::to_string(kKeyBlock);
  attest_kernel k{};
  k.struct_size = sizeof k;
  k.abi_version = ATTEST_ABI_VERSION;
  k.description = common_description(name, summary, schedule.c_str());
  k.description.schedule_backward = backward_schedule.c_str();
  k.description.features |= ATTEST_SINKS | ATTEST_PAGED_KV | ATTEST_BIAS | ATTEST_HEAD_MASK |
                            ATTEST_QUERY_LENGTHS | ATTEST_OFFSET_WINDOW | ATTEST_SHARED_KV |
                            ATTEST_BATCH_INVARIANT | ATTEST_SPLIT_INVARIANT | ATTEST_NONFINITE;
  k.workspace_bytes = workspace_bytes<kTerms>;
  k.forward = forward<kTerms>;
  k.backward = backward<kTerms>;
  return k;
}

}  // namespace

float sink_of(const attest_problem& problem, std::int64_t head) {
  return problem.sinks == nullptr ? -std::numeric_limits<float>::infinity() : problem.sinks[head];
}

const attest_kernel& flash2_kernel() {
  static const attest_kernel kernel = kernel_with<Terms::numbers>(
      "cpu/flash2", "tiled online softmax, query-stationary; backward key-stationary");
  return kernel;
}

CountedCode flash2_counted() {
  return {[](const attest_forward_args& args, MovedWords* words) { flash2_forward(args, words); },
          flash2_backward};
}

const attest_kernel& flash2_bf16_kernel() {
  static const attest_kernel kernel = [] {
    attest_kernel k = kernel_with<Terms::pairs>(
        "cpu/flash2_bf16", "cpu/flash2 with forward products of pairs of bf16 (AVX-512 BF16)");
    k.description.dtypes = 1u << ATTEST_BF16;
    k.description.numerics.p_cast = 1 + ATTEST_BF16;
    k.description.numerics.flushes_subnormals = 1;
    return k;
  }();
  return kernel;
}

CountedCode flash2_bf16_counted() {
  return {[](const attest_forward_args& args, MovedWords* words) {
            flash2_forward(args, words, Terms::pairs);
          },
          flash2_backward};
}

}  // namespace attest::cpu
