#pragma once

#include <vector>

#include "gpu/kernels/emulated.hpp"

namespace attest::gpu {

/// One direction of a kernel on the host: what it takes, the floats of workspace it needs, and its
/// launches with all that they found and moved.
template <class Call>
struct EmulatedDirection {
  bool (*fits)(const AttentionShape& shape, const simt::Emulation& emulation);
  std::int64_t (*workspace_words)(const attest_problem& problem);
  simt::LaunchReport (*run)(Call& call, const simt::Emulation& emulation);
};

/// A CUDA kernel as a kernel of the ABI: each call is one emulated launch or several. A problem
/// that does not fit is refused with ATTEST_UNSUPPORTED, a call with a diagnosis has failed.
/// The largest head dimension is that of the directions it has.  [gpu/kernels/forward_test]
class EmulatedKernel {
 public:
  using Forward = EmulatedDirection<EmulatedForward>;
  using Backward = EmulatedDirection<EmulatedBackward>;

  EmulatedKernel(const attest_description& description, const Forward& forward);
  EmulatedKernel(const attest_description& description, const Forward& forward,
                 const Backward& backward);
  EmulatedKernel(const EmulatedKernel&) = delete;
  EmulatedKernel& operator=(const EmulatedKernel&) = delete;

  const attest_kernel& abi() const { return abi_; }
  const attest_description& description() const { return abi_.description; }
  const Forward& forward() const { return forward_; }
  bool takes(attest_dtype dtype) const { return (description().dtypes >> dtype & 1U) != 0; }

 private:
  std::int64_t largest_head_dim() const;

  Forward forward_;
  Backward backward_{};
  attest_kernel abi_{};
};

/// What the kernels of this room have in common: float32, every mask, any strides. LSE is among
/// the features.
attest_description emulated_description(const char* name, const char* summary,
                                        const char* schedule);

/// All kernels of this room. Forward, each moves the words of the schedule that it names, reads and
/// writes, integer for integer: every access to Q, K, V, O, LSE and workspace is a word; lengths,
/// masks and slopes are not counted. Where the caller asks for no LSE, a kernel that needs none
/// itself does not write it.  [gpu/kernels/schedule_words_test]
const std::vector<const EmulatedKernel*>& emulated_kernels();

}  // namespace attest::gpu
