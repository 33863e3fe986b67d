#include "gpu/kernels/emulated_kernel.hpp"

namespace attest::gpu {
namespace {

template <class Call, class Args>
attest_status call(const EmulatedDirection<Call>& direction, const Args& args) {
  simt::Emulation emulation;
  emulation.threads = args.problem->num_threads;
  if (!direction.fits(shape_of(*args.problem), emulation)) return ATTEST_UNSUPPORTED;
  Call emulated(args);
  return direction.run(emulated, emulation).clean() ? ATTEST_OK : ATTEST_FAILED;
}

const EmulatedKernel& kernel_of(const void* self) {
  return *static_cast<const EmulatedKernel*>(self);
}

}  // namespace

EmulatedKernel::EmulatedKernel(const attest_description& description, const Forward& forward)
    : EmulatedKernel(description, forward, {}) {}

EmulatedKernel::EmulatedKernel(const attest_description& description, const Forward& forward,
                               const Backward& backward)
    : forward_(forward), backward_(backward) {
  abi_.struct_size = sizeof abi_;
  abi_.abi_version = ATTEST_ABI_VERSION;
  abi_.description = description;
  abi_.description.max_head_dim = largest_head_dim();
  abi_.self = this;
  abi_.workspace_bytes = [](const void* self, const attest_problem* problem,
                            std::uint32_t direction) {
    const EmulatedKernel& kernel = kernel_of(self);
    const std::int64_t words = direction == ATTEST_BACKWARD
                                   ? kernel.backward_.workspace_words(*problem)
                                   : kernel.forward_.workspace_words(*problem);
    return static_cast<std::size_t>(words) * sizeof(float);
  };
  abi_.forward = [](const void* self, const attest_forward_args* args) {
    const EmulatedKernel& kernel = kernel_of(self);
    // The kernels without LSE have nowhere to take it from.
    const bool no_LSE = (kernel.description().features & ATTEST_LSE) == 0;
    if (!kernel.takes(args->problem->dtype) || (args->LSE != nullptr && no_LSE)) {
      return ATTEST_UNSUPPORTED;
    }
    return call(kernel.forward_, *args);
  };
  if (backward_.run != nullptr) {
    abi_.description.directions |= ATTEST_BACKWARD;
    abi_.description.features |= ATTEST_DLSE;
    abi_.backward = [](const void* self, const attest_backward_args* args) {
      const EmulatedKernel& kernel = kernel_of(self);
      if (!kernel.takes(args->problem->dtype)) return ATTEST_UNSUPPORTED;
      return call(kernel.backward_, *args);
    };
  }
}

std::int64_t EmulatedKernel::largest_head_dim() const {
  constexpr int kLargest = 1 << 20;  // any, for all that a tensor is
  const auto fits = [&](int head_dim) {
    AttentionShape shape;
    shape.head_dim_qk = shape.head_dim_v = head_dim;
    return forward_.fits(shape, {}) && (backward_.run == nullptr || backward_.fits(shape, {}));
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

attest_description emulated_description(const char* name, const char* summary,
                                        const char* schedule) {
  attest_description d{};
  d.struct_size = sizeof d;
  d.name = name;
  d.summary = summary;
  d.schedule = schedule;
  d.device = ATTEST_CPU;
  d.directions = ATTEST_FORWARD;
  d.dtypes = 1U << ATTEST_F32;
  d.features = ATTEST_CAUSAL_TOP_LEFT | ATTEST_CAUSAL_BOTTOM_RIGHT | ATTEST_WINDOW |
               ATTEST_KEY_LENGTHS | ATTEST_PACKED_SEQUENCES | ATTEST_BOOLEAN_MASK | ATTEST_GQA |
               ATTEST_HEAD_DIM_V | ATTEST_SOFTCAP | ATTEST_ALIBI | ATTEST_ANY_SCALE |
               ATTEST_ANY_STRIDES | ATTEST_LSE | ATTEST_CROSS_LENGTHS | ATTEST_EMPTY_ROWS;
  d.empty_row = ATTEST_ZERO_NEG_INF;
  d.numerics.struct_size = sizeof d.numerics;
  return d;
}

}  // namespace attest::gpu
