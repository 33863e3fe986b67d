#include "gpu/testing/forward_kernels.hpp"

#include <algorithm>
#include <iterator>

#include "gpu/testing/call.hpp"

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

std::vector<const char*> taken(const EmulatedKernel& kernel, const std::vector<const char*>& all) {
  std::vector<const char*> some;
  if (!kernel.directions().forward.exists()) return some;
  std::copy_if(all.begin(), all.end(), std::back_inserter(some), [&](const char* text) {
    Call call(spelled_for(kernel.abi(), text), kernel.description().features);
    return kernel.accepts(call.forward_arguments(kernel.abi()));
  });
  return some;
}

std::vector<std::string> spellings_taken(const EmulatedKernel& kernel,
                                         const std::vector<const char*>& all) {
  std::vector<std::string> some;
  for (const char* text : taken(kernel, all)) {
    for (std::string& spelled : spellings_for(kernel.abi(), text))
      some.push_back(std::move(spelled));
  }
  return some;
}

}  // namespace attest::gpu::testing
