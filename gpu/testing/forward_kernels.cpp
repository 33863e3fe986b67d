#include "gpu/testing/forward_kernels.hpp"

#include <algorithm>

namespace attest::gpu::testing {

const std::vector<const EmulatedKernel*>& forward_kernels() {
  static const std::vector<const EmulatedKernel*> all = [] {
    std::vector<const EmulatedKernel*> found;
    for (const EmulatedKernel* kernel : emulated_kernels()) {
      const auto run = kernel->directions().forward.run;
      const bool seen = std::any_of(found.begin(), found.end(), [&](const EmulatedKernel* other) {
        return other->directions().forward.run == run;
      });
      if (run != nullptr && !seen) found.push_back(kernel);
    }
    return found;
  }();
  return all;
}

}  // namespace attest::gpu::testing
