#pragma once

#include <string>

#include "gpu/ptx/memory/tensor_map.hpp"
#include "gpu/ptx/program/program.hpp"
#include "python/api/attest_api.h"

/// Checked kernel behind the C API's name.
struct attest_ptx {
  attest::ptx::Program program;
};

namespace attest::python {

struct PtxLaunch {
  attest_outcome outcome = ATTEST_PASSED;
  std::string report;  // JSON
};

/// Throws InvalidProblem for what is no tensor map.
ptx::TensorMapBytes tensor_map(const attest_ptx_tensor& tensor);

/// Executes the launch with all checks. Throws InvalidProblem where it makes no sense.
/// [python/api/ptx_launch_test]
PtxLaunch launch(const attest_ptx& loaded, const attest_ptx_shape& shape);

}  // namespace attest::python
