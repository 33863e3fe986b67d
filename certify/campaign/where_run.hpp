#pragma once

#include <string_view>

#include "core/abi/attest_kernel.h"

namespace attest::certify {

/// Where the calls of a kernel run, in the words of every report: "emulated on the host" for the
/// CUDA kernels of gpu/, "emulated on the host from its PTX" for a library's, "on a CUDA device",
/// or "on the CPU"; of a function in Python "on cuda:1", as its summary names the device of its
/// arrays.  [certify/campaign/where_run_test]
std::string_view where_run(const attest_description& description);

}  // namespace attest::certify
