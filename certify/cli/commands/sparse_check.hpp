#pragma once

#include <string>
#include <vector>

#include "core/sparse_operands/sparse_kernel.hpp"

namespace attest::certify::cli {

/// Returns the kernels of sparse Q, K and V, the broken ones too.
std::vector<SparseKernel> all_sparse_kernels();

/// Throws InvalidProblem for a kernel that takes sparse inputs alone.
void require_dense(const std::string& kernel);

}  // namespace attest::certify::cli
