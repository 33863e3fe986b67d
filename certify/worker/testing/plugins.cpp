#include "certify/worker/testing/plugins.hpp"

#include "core/error.hpp"

namespace attest::certify::worker::testing {

Limits limits() {
  Limits limits;
  limits.program = ATTEST_PROGRAM;
  return limits;
}

std::string plugin(const std::string& name) {
  return std::string(ATTEST_PLUGINS) + "/lib" + name + ".so";
}

const attest_kernel& kernel_called(const IsolatedKernels& kernels, const std::string& suffix) {
  for (const auto& kernel : kernels) {
    const std::string name = kernel->kernel().description.name;
    if (name.substr(name.rfind(':') + 1) == suffix) return kernel->kernel();
  }
  throw InternalError("no kernel " + suffix);
}

proptest::Case small_case() {
  return {Problem::parse("sq=3,sk=5,d=4"), proptest::Values::normal, 1, 1};
}

}  // namespace attest::certify::worker::testing
