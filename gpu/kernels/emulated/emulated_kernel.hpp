#pragma once

#include <string>
#include <vector>

#include "gpu/kernels/emulated/emulated.hpp"
#include "gpu/kernels/emulated/emulated_loss.hpp"
#include "gpu/kernels/emulated/launch_plan.hpp"

namespace attest::gpu {

/// One direction of a kernel on the host: what it takes, the floats of workspace it needs, its
/// launches with all that they found and moved, and the same launches without making them, for what
/// it takes.
template <class Call>
struct EmulatedDirection {
  bool (*fits)(const AttentionShape& shape, const simt::Emulation& emulation) = nullptr;
  std::int64_t (*workspace_words)(const attest_problem& problem) = nullptr;
  simt::LaunchReport (*run)(Call& call, const simt::Emulation& emulation) = nullptr;
  LaunchPlan (*plan)(const AttentionShape& shape) = nullptr;

  bool exists() const { return run != nullptr; }
};

struct EmulatedDirections {
  EmulatedDirection<EmulatedForward> forward{};
  EmulatedDirection<EmulatedBackward> backward{};
  EmulatedDirection<EmulatedLoss> loss_gradient{};
};

/// A CUDA kernel as a kernel of the ABI: each call is one emulated launch or several. A problem
/// that does not fit is refused with ATTEST_UNSUPPORTED, a call with a diagnosis has failed.
/// The directions described are those that exist, the largest head dimension is one that fits all
/// of them.  [gpu/kernels/forward_test "the description tells the largest head dimension"]
class EmulatedKernel {
 public:
  EmulatedKernel(const attest_description& description, const EmulatedDirections& directions);
  EmulatedKernel(const EmulatedKernel&) = delete;
  EmulatedKernel& operator=(const EmulatedKernel&) = delete;

  const attest_kernel& abi() const { return abi_; }
  const attest_description& description() const { return abi_.description; }
  const EmulatedDirections& directions() const { return directions_; }
  bool takes(attest_dtype dtype) const { return (description().dtypes >> dtype & 1U) != 0; }
  /// Tells whether a call may ask for this; else the call is ATTEST_UNSUPPORTED.
  bool accepts(const attest_forward_args& args) const;
  bool accepts(const attest_backward_args& args) const;
  bool accepts(const attest_loss_args& args) const;
  /// Floats, of a direction of attest_kernel.h.
  std::int64_t workspace_words(const attest_problem& problem, std::uint32_t direction) const;

 private:
  std::int64_t largest_head_dim() const;

  EmulatedDirections directions_;
  attest_kernel abi_{};
};

/// Returns what the attention kernels of this room have in common: float32, every mask (patterns in
/// boolean form), any strides. LSE is among the features. A kernel with a backward names the
/// schedule of that, too.
attest_description emulated_description(const char* name, const char* summary, const char* schedule,
                                        const char* schedule_backward = nullptr);

/// The same on tensor cores, tensors in bf16 or f16: products are exact and summed in float32 eight
/// at a time, as coarsely as a device of compute capability 8.0 does it (Fasi, Higham, Mikaitis and
/// Pranesh 2021, Numerical behavior of NVIDIA tensor cores), P and dS are rounded to the tensors'
/// type for their products.  [gpu/kernels/tensor_core_test "P is cast once"]
attest_description tensor_core_description(const char* name, const char* summary,
                                           const char* schedule,
                                           const char* schedule_backward = nullptr);

/// A shape for which kernels whose tiles depend on it name theirs (attest_kernel.h).
AttentionShape heads_of_64_columns();

/// The same of the loss gradients: float32, any strides, dY.
attest_description emulated_loss_description(const char* name, const char* summary,
                                             const char* schedule);

/// "gpu/flash2" for the size of tiles that has the name alone, else "gpu/flash2_16".
std::string variant_name(const char* name, int size, int named_size);

/// All kernels of this room. Forward, each moves the words of the schedule that it names, reads and
/// writes, integer for integer: every access to Q, K, V, O, LSE and workspace is a word; lengths,
/// boolean masks, slopes, sinks, biases and block tables are not counted, lists of a block mask
/// are. Where the caller asks for no LSE, a kernel that needs none itself does not write it.
/// [gpu/kernels/schedule_words_test]
const std::vector<const EmulatedKernel*>& emulated_kernels();

}  // namespace attest::gpu
