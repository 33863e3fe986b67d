#include "gpu/kernels/emulated/emulated_kernel.hpp"

#include <type_traits>

#include "core/features/score_features.hpp"

namespace attest::gpu {
namespace {

const EmulatedKernel& kernel_of(const void* self) {
  return *static_cast<const EmulatedKernel*>(self);
}

template <class Call, class Args>
simt::LaunchReport run_on(const EmulatedDirection<Call>& direction, const Args& args,
                          const simt::Emulation& emulation) {
  Call call(args);
  return direction.run(call, emulation);
}

template <auto kDirection, class Args>
attest_status call(const void* self, const Args* args) {
  const EmulatedKernel& kernel = kernel_of(self);
  if (!kernel.accepts(*args)) return ATTEST_UNSUPPORTED;
  simt::Emulation emulation;
  emulation.threads = args->problem->num_threads;
  const simt::LaunchReport report = run_on(kernel.directions().*kDirection, *args, emulation);
  return report.clean() ? ATTEST_OK : ATTEST_FAILED;
}

std::size_t workspace_bytes(const void* self, const attest_problem* problem,
                            std::uint32_t direction) {
  const std::int64_t words = kernel_of(self).workspace_words(*problem, direction);
  return static_cast<std::size_t>(words) * sizeof(float);
}

// A form that is not claimed would not be looked at: its pairs would all be visible.
bool claims_mask(std::uint32_t features, const attest_mask& mask) {
  const auto claimed = [&](const void* form, std::uint32_t feature) {
    return form == nullptr || (features & feature) != 0;
  };
  return claimed(mask.boolean, ATTEST_BOOLEAN_MASK) && claimed(mask.blocks, ATTEST_BLOCK_MASK) &&
         claimed(mask.csr, ATTEST_CSR_MASK) && claimed(mask.nm, ATTEST_NM_MASK) &&
         claimed(mask.per_head, ATTEST_HEAD_MASK) &&
         claimed(mask.query_lengths, ATTEST_QUERY_LENGTHS) &&
         claimed(mask.window_ends, ATTEST_OFFSET_WINDOW);
}

// A sink that is not claimed would not be looked at.
bool claims_sinks(std::uint32_t features, const attest_problem& problem) {
  return problem.sinks == nullptr || (features & ATTEST_SINKS) != 0;
}

// The same of a bias.
bool claims_bias(std::uint32_t features, const attest_tensor* bias) {
  return bias == nullptr || (features & ATTEST_BIAS) != 0;
}

// Pages that are not claimed would be taken for batch entries; gradients of keys in pages have
// none.
bool claims_pages(std::uint32_t features, const attest_problem& problem, bool forward) {
  return problem.paged_kv == nullptr || (forward && (features & ATTEST_PAGED_KV) != 0);
}

template <class Direction>
bool accepts_problem(const EmulatedKernel& kernel, const Direction& direction,
                     const attest_problem& problem) {
  return direction.exists() && kernel.takes(problem.dtype) &&
         claims_mask(kernel.description().features, problem.mask) &&
         claims_sinks(kernel.description().features, problem) &&
         claims_pages(kernel.description().features, problem,
                      std::is_same_v<Direction, EmulatedDirection<EmulatedForward>>) &&
         direction.fits(shape_of(problem), {});
}

attest_description float_description(const char* name, const char* summary, const char* schedule,
                                     std::uint32_t features) {
  attest_description d{};
  d.struct_size = sizeof d;
  d.name = name;
  d.summary = summary;
  d.schedule = schedule;
  d.device = ATTEST_CPU;
  d.dtypes = 1U << ATTEST_F32;
  d.features = features;
  d.numerics.struct_size = sizeof d.numerics;
  return d;
}

}  // namespace

EmulatedKernel::EmulatedKernel(const attest_description& description,
                               const EmulatedDirections& directions)
    : directions_(directions) {
  abi_.struct_size = sizeof abi_;
  abi_.abi_version = ATTEST_ABI_VERSION;
  abi_.description = description;
  abi_.description.directions = 0;
  abi_.description.max_head_dim = largest_head_dim();
  abi_.self = this;
  abi_.workspace_bytes = workspace_bytes;
  if (directions.forward.exists()) {
    abi_.description.directions |= ATTEST_FORWARD;
    abi_.forward = call<&EmulatedDirections::forward, attest_forward_args>;
  }
  if (directions.backward.exists()) {
    abi_.description.directions |= ATTEST_BACKWARD;
    abi_.description.features |= ATTEST_DLSE;
    abi_.backward = call<&EmulatedDirections::backward, attest_backward_args>;
  }
  if (directions.loss_gradient.exists()) {
    abi_.description.directions |= ATTEST_LOSS_GRADIENT;
    abi_.loss_gradient = call<&EmulatedDirections::loss_gradient, attest_loss_args>;
  }
}

bool EmulatedKernel::accepts(const attest_forward_args& args) const {
  // The kernels without LSE have nowhere to take it from.
  const bool no_LSE = (description().features & ATTEST_LSE) == 0;
  return !(args.LSE != nullptr && no_LSE) && claims_bias(description().features, args.bias) &&
         accepts_problem(*this, directions_.forward, *args.problem);
}

bool EmulatedKernel::accepts(const attest_backward_args& args) const {
  return claims_bias(description().features, args.bias) &&
         accepts_problem(*this, directions_.backward, *args.problem);
}

bool EmulatedKernel::accepts(const attest_loss_args& args) const {
  return accepts_problem(*this, directions_.loss_gradient, *args.problem);
}

std::int64_t EmulatedKernel::workspace_words(const attest_problem& problem,
                                             std::uint32_t direction) const {
  const auto words = direction == ATTEST_BACKWARD        ? directions_.backward.workspace_words
                     : direction == ATTEST_LOSS_GRADIENT ? directions_.loss_gradient.workspace_words
                                                         : directions_.forward.workspace_words;
  return words(problem);
}

std::int64_t EmulatedKernel::largest_head_dim() const {
  constexpr int kLargest = 1 << 20;  // any, for all that a tensor is
  const auto fits = [&](int head_dim) {
    AttentionShape shape;
    shape.batch = shape.num_heads_q = shape.num_heads_kv = shape.seqlen_q = shape.seqlen_k = 1;
    shape.head_dim_qk = shape.head_dim_v = head_dim;
    const auto fits_one = [&](const auto& direction) {
      return !direction.exists() || direction.fits(shape, {});
    };
    return fits_one(directions_.forward) && fits_one(directions_.backward) &&
           fits_one(directions_.loss_gradient);
  };
  int low = 0, high = kLargest;
  while (low < high) {
    const int middle = low + (high - low + 1) / 2;
    if (fits(middle)) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low == kLargest ? 0 : low;
}

AttentionShape heads_of_64_columns() {
  AttentionShape shape;
  shape.batch = shape.num_heads_q = shape.num_heads_kv = shape.seqlen_q = shape.seqlen_k = 1;
  shape.head_dim_qk = shape.head_dim_v = 64;
  return shape;
}

std::string variant_name(const char* name, int size, int named_size) {
  return size == named_size ? name : std::string(name) + "_" + std::to_string(size);
}

attest_description emulated_description(const char* name, const char* summary, const char* schedule,
                                        const char* schedule_backward) {
  attest_description d = float_description(
      name, summary, schedule,
      ATTEST_CAUSAL_TOP_LEFT | ATTEST_CAUSAL_BOTTOM_RIGHT | ATTEST_WINDOW | ATTEST_KEY_LENGTHS |
          ATTEST_PACKED_SEQUENCES | ATTEST_BOOLEAN_MASK | ATTEST_GQA | ATTEST_HEAD_DIM_V |
          score_feature_claims() | ATTEST_ANY_SCALE | ATTEST_ANY_STRIDES | ATTEST_LSE |
          ATTEST_CROSS_LENGTHS | ATTEST_EMPTY_ROWS | ATTEST_LAYOUT_BITS);
  d.empty_row = ATTEST_ZERO_NEG_INF;
  d.schedule_backward = schedule_backward;
  return d;
}

attest_description tensor_core_description(const char* name, const char* summary,
                                           const char* schedule, const char* schedule_backward) {
  attest_description d = emulated_description(name, summary, schedule, schedule_backward);
  d.dtypes = 1U << ATTEST_BF16 | 1U << ATTEST_F16;
  d.numerics.accumulation = ATTEST_FUSED_BLOCKS;
  d.numerics.fused_block = 8;
  d.numerics.fused_fraction_bits = 24;
  d.numerics.p_cast = ATTEST_INPUT_DTYPE;
  return d;
}

attest_description emulated_loss_description(const char* name, const char* summary,
                                             const char* schedule) {
  return float_description(name, summary, schedule,
                           ATTEST_ANY_STRIDES | ATTEST_LOSS_DY | ATTEST_LAYOUT_BITS);
}

}  // namespace attest::gpu
