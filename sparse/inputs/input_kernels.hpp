#pragma once

#include <vector>

#include "core/sparse_operands/sparse_kernel.hpp"

namespace attest::sparse {

/// Lists what computes attention of sparse inputs here: sparse_inputs/expm1, the kernel of
/// attention.hpp; sparse_inputs/sparse_flash and sparse_inputs/stored_support, the schedules
/// forward and backward on the machine that counts, in three tiles along every axis.
/// [certify/sparse_inputs/sparse_inputs_check_test "kernels of sparse inputs pass"]
std::vector<SparseKernel> input_kernels();

}  // namespace attest::sparse
