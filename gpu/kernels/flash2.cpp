#include "gpu/kernels/flash2.hpp"

#include "core/error.hpp"
#include "gpu/kernels/flash2.cuh"
#include "gpu/kernels/two_pass.hpp"

namespace attest::gpu {
namespace {

using Arguments = ForwardArguments<simt::Counted>;
using Launcher = simt::LaunchReport (*)(const simt::LaunchShape&, const simt::Emulation&,
                                        const simt::GlobalMemory&, const Arguments&);

template <int kColumns>
simt::LaunchReport launch(const simt::LaunchShape& shape, const simt::Emulation& emulation,
                          const simt::GlobalMemory& memory, const Arguments& arguments) {
  return simt::launch(shape, emulation, memory, flash2_forward<kColumns, simt::Counted>, arguments);
}

// By the columns of 32 that a lane holds of a row of O.
Launcher launcher_for(int head_dim_v) {
  if (head_dim_v <= 32) return launch<1>;
  if (head_dim_v <= 64) return launch<2>;
  if (head_dim_v <= 128) return launch<4>;
  if (head_dim_v <= 256) return launch<8>;
  if (head_dim_v <= 576) return launch<18>;
  return nullptr;
}

std::int64_t shared_bytes(const AttentionShape& shape) {
  return Flash2::shared_floats(shape.head_dim_qk, shape.head_dim_v) *
         static_cast<std::int64_t>(sizeof(float));
}

std::int64_t blocks(const AttentionShape& shape) {
  return blocks_for(shape.seqlen_q, Flash2::kBlockQ, shape.num_heads_q, shape.batch);
}

bool fits(const AttentionShape& shape, const simt::Emulation& emulation) {
  constexpr int kMostColumns = 576;
  return launcher_for(shape.head_dim_v) != nullptr && shape.head_dim_qk <= kMostColumns &&
         blocks(shape) <= kMostBlocks && shared_bytes(shape) <= emulation.shared_bytes_limit;
}

attest_status forward(const void*, const attest_forward_args* args) {
  if (args->problem->dtype != ATTEST_F32) return ATTEST_UNSUPPORTED;
  const EmulatedForward call(*args);
  const AttentionShape& shape = call.arguments.shape;
  simt::Emulation emulation;
  emulation.threads = args->problem->num_threads;
  if (!fits(shape, emulation)) return ATTEST_UNSUPPORTED;
  return flash2_forward_emulated(call, emulation).diagnoses.empty() ? ATTEST_OK : ATTEST_FAILED;
}

std::size_t workspace_bytes(const void*, const attest_problem* problem, std::uint32_t direction) {
  if (direction != ATTEST_BACKWARD) return 0;
  // Packed, the rows of all sequences follow one another; else every batch entry has seqlen_q.
  const std::int64_t rows = problem->mask.cu_seqlens_q != nullptr
                                ? problem->mask.cu_seqlens_q[problem->batch]
                                : problem->batch * problem->seqlen_q;
  return static_cast<std::size_t>(rows * problem->num_heads_q) * sizeof(float);
}

attest_status backward(const void*, const attest_backward_args* args) {
  if (args->problem->dtype != ATTEST_F32) return ATTEST_UNSUPPORTED;
  const EmulatedBackward call(*args);
  simt::Emulation emulation;
  emulation.threads = args->problem->num_threads;
  if (!two_pass_fits(call.arguments.shape, emulation)) return ATTEST_UNSUPPORTED;
  return two_pass_emulated(call, emulation).diagnoses.empty() ? ATTEST_OK : ATTEST_FAILED;
}

}  // namespace

simt::LaunchReport flash2_forward_emulated(const EmulatedForward& call,
                                           const simt::Emulation& emulation) {
  const AttentionShape& shape = call.arguments.shape;
  const Launcher launcher = launcher_for(shape.head_dim_v);
  if (launcher == nullptr) throw InvalidProblem("gpu/flash2: head_dim_v is over 576");
  if (blocks(shape) == 0) return {};  // no query: nothing to write
  return launcher(
      {{static_cast<unsigned>(blocks(shape)), 1, 1}, {Flash2::kLanes, 1, 1}, shared_bytes(shape)},
      emulation, call.memory, call.arguments);
}

FastMemory flash2_fast_memory(const AttentionShape& shape) {
  return {shared_bytes(shape), Flash2::kLanes,
          declared_thread_memory("flash2_forward", columns_for(shape.head_dim_v))};
}

const attest_kernel& flash2_kernel() {
  static const attest_kernel kernel = [] {
    attest_kernel k{};
    k.struct_size = sizeof k;
    k.abi_version = ATTEST_ABI_VERSION;
    attest_description& d = k.description;
    d.struct_size = sizeof d;
    d.name = "gpu/flash2";
    d.summary = "CUDA, emulated on the host: online softmax; backward in two passes";
    d.device = ATTEST_CPU;
    d.directions = ATTEST_FORWARD | ATTEST_BACKWARD;
    d.dtypes = 1U << ATTEST_F32;
    d.features = ATTEST_CAUSAL_TOP_LEFT | ATTEST_CAUSAL_BOTTOM_RIGHT | ATTEST_WINDOW |
                 ATTEST_KEY_LENGTHS | ATTEST_PACKED_SEQUENCES | ATTEST_BOOLEAN_MASK | ATTEST_GQA |
                 ATTEST_HEAD_DIM_V | ATTEST_SOFTCAP | ATTEST_ALIBI | ATTEST_ANY_SCALE |
                 ATTEST_ANY_STRIDES | ATTEST_LSE | ATTEST_DLSE | ATTEST_CROSS_LENGTHS |
                 ATTEST_EMPTY_ROWS;
    d.empty_row = ATTEST_ZERO_NEG_INF;
    d.numerics.struct_size = sizeof d.numerics;
    d.max_head_dim = 576;
    d.schedule = "flash2:bq=32,bk=32";
    k.workspace_bytes = workspace_bytes;
    k.forward = forward;
    k.backward = backward;
    return k;
  }();
  return kernel;
}

}  // namespace attest::gpu
