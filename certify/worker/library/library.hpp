#pragma once

#include <string>
#include <vector>

#include "core/abi/attest_kernel.h"

namespace attest::certify::worker {

/// Loads a shared library into this process and returns its kernels, each of which `objection` has
/// nothing against. Throws InvalidProblem naming the library: it does not load (with the loader's
/// reason), has no attest_get_kernel, no kernel, two of one name, or a kernel that is refused.
/// The library is never unloaded. With `emulate` its kernels are those of an emulated device, and
/// it is refused where it needs more of CUDA than that has.
/// [certify/worker/library/library_test "a library without the symbol", "descriptions that are
/// nonsense", certify/worker/library/emulated_library_test]
std::vector<const attest_kernel*> open_library(const std::string& path, bool emulate = false);

}  // namespace attest::certify::worker
