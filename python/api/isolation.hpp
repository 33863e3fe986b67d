#pragma once

#include <string_view>

#include "core/abi/attest_kernel.h"

/// Kernels that programs of their own carry out: attest_isolate and what goes with it.
namespace attest::python {

/// Starts the program and returns its kernel, which `release` ends. Throws InvalidProblem where the
/// program does not start, says why it has no kernel, or the limits make no sense.
/// [python/api/isolation_test "a kernel of another program"]
const attest_kernel* isolate(const char* const* command, std::string_view limits);

/// Ends the processes of such a kernel; does nothing for nullptr.
void release(const attest_kernel* kernel);

/// Carries out calls until the certifier has no more, then ends the process. Without a kernel it
/// says the refusal; nullptr is no file of its code. Throws InvalidProblem where no certifier
/// started this process.
void serve(const attest_kernel* kernel, const char* contract, const char* refusal,
           const char* file);

}  // namespace attest::python
