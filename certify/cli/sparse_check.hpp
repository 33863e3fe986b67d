#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/sparse_operands/sparse_kernel.hpp"

namespace attest::certify::cli {

/// `attest check --inputs`.
struct SparseCheckOptions {
  std::string inputs;
  std::string kernel;  // empty: all but the broken ones
  std::string problem;
  std::optional<std::string> values;
  std::uint64_t seed = 1;
  bool json = false;
};

/// Kernels of sparse Q, K and V, the broken ones too.
std::vector<SparseKernel> all_sparse_kernels();

int check_sparse_inputs(const SparseCheckOptions& options);

/// Throws InvalidProblem for a kernel that takes sparse inputs alone.
void require_dense(const std::string& kernel);

}  // namespace attest::certify::cli
