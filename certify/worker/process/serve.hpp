#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/abi/attest_kernel.h"

namespace attest::certify::worker {

/// The kernels a worker serves; throws InvalidProblem when it cannot have them.
using Loader = std::function<std::vector<const attest_kernel*>()>;

/// The whole life of a worker process: loads, then carries out tasks until the certifier closes
/// its end, which ends the process. Returns the exit status where that begins badly: 2 when the
/// process was not started by a certifier. `file` is that of the kernels' code, "" for none.
int serve(const Loader& load, const std::string& file = "");

}  // namespace attest::certify::worker
