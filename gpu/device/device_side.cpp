#include "gpu/device/device_side.hpp"

#include <vector>

#include "core/error.hpp"
#include "gpu/kernels/flash2/flash2.hpp"
#include "gpu/kernels/kernels.hpp"
#include "gpu/kernels/loss/loss_large.hpp"
#include "gpu/kernels/loss/loss_rows.hpp"
#include "gpu/kernels/loss/loss_small.hpp"
#include "gpu/kernels/square_tiled/square_tiled.hpp"
#include "gpu/kernels/square_tiled/square_tiled_bwd.hpp"

namespace attest::gpu::cuda {
namespace {

using Launches = DeviceSide::Launches;

template <int kRows>
Launches of_rows() {
  return {&flash2_held_kernel<kRows>(), RowsOnDevice<kRows>::flash2_forward,
          RowsOnDevice<kRows>::two_pass_backward, nullptr};
}
template <int kRows>
std::vector<Launches> of_loss_rows() {
  using Side = LossRowsOnDevice<kRows>;
  return {{&loss_large_held_kernel<kRows>(), nullptr, nullptr, Side::large_gradient},
          {&loss_rows_held_kernel<kRows>(), nullptr, nullptr, Side::rows_gradient}};
}
template <int kSide>
std::vector<Launches> of_sides() {
  using Side = SidesOnDevice<kSide>;
  return {{&square_tiled_side_kernel<kSide>(), Side::forward, nullptr, nullptr},
          {&square_tiled_bwd_side_kernel<kSide>(), flash2_forward, Side::backward, nullptr},
          {&loss_small_side_kernel<kSide>(), nullptr, nullptr, Side::loss_gradient}};
}

// Returns the launches of kernels in gpu/kernels/emulated/families.hpp that are not among all
// kernels.
std::vector<Launches> of_families() {
  std::vector<Launches> all{of_rows<4>(), of_rows<8>(), of_rows<16>(), of_rows<32>(),
                            of_rows<64>()};
  for (const auto& more : {of_loss_rows<8>(), of_loss_rows<16>(), of_loss_rows<32>(),
                           of_sides<16>(), of_sides<64>(), of_sides<128>()}) {
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

const Launches& launches_of(const EmulatedKernel& kernel) {
  static const std::vector<Launches> named{
#define ATTEST_CUDA_KERNEL(name, ...) {&name##_kernel(), __VA_ARGS__},
#include "gpu/kernels/kernels.def"
#undef ATTEST_CUDA_KERNEL
  };
  static const std::vector<Launches> families = of_families();
  for (const std::vector<Launches>* all : {&named, &families}) {
    for (const Launches& one : *all) {
      if (one.kernel == &kernel) return one;
    }
  }
  throw InternalError(std::string(kernel.description().name) +
                      ": nothing is launched for it on a device; add it to "
                      "gpu/device/device_side.cpp");
}

std::size_t workspace_bytes(const void* self, const attest_problem* problem,
                            std::uint32_t direction) {
  const auto& emulated = static_cast<const DeviceSide*>(self)->emulated();
  return static_cast<std::size_t>(emulated.workspace_words(*problem, direction)) * sizeof(float);
}

}  // namespace

DeviceSide::DeviceSide(const EmulatedKernel& kernel, TrafficSink sink)
    : launches_(&launches_of(kernel)),
      sink_(sink),
      name_(std::string(kernel.description().name) + "@device"),
      summary_(kernel.description().summary),
      abi_(kernel.abi()) {
  summary_.erase(0, summary_.find(": ") + 2);  // "CUDA, emulated on the host: "
  abi_.description.name = name_.c_str();
  abi_.description.summary = summary_.c_str();
  abi_.description.device = ATTEST_CUDA;
  abi_.self = this;
  abi_.workspace_bytes = cuda::workspace_bytes;
  abi_.forward = launches_->forward == nullptr ? nullptr : forward;
  abi_.backward = launches_->backward == nullptr ? nullptr : backward;
  abi_.loss_gradient = launches_->loss_gradient == nullptr ? nullptr : loss_gradient;
}

attest_status DeviceSide::forward(const void* self, const attest_forward_args* args) {
  const auto& side = *static_cast<const DeviceSide*>(self);
  return side.emulated().accepts(*args) ? side.launches_->forward(*args, side.sink_)
                                        : ATTEST_UNSUPPORTED;
}

attest_status DeviceSide::backward(const void* self, const attest_backward_args* args) {
  const auto& side = *static_cast<const DeviceSide*>(self);
  return side.emulated().accepts(*args) ? side.launches_->backward(*args, side.sink_)
                                        : ATTEST_UNSUPPORTED;
}

attest_status DeviceSide::loss_gradient(const void* self, const attest_loss_args* args) {
  const auto& side = *static_cast<const DeviceSide*>(self);
  return side.emulated().accepts(*args) ? side.launches_->loss_gradient(*args, side.sink_)
                                        : ATTEST_UNSUPPORTED;
}

}  // namespace attest::gpu::cuda
