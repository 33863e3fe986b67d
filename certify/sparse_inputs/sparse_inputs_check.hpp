#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/sparse_operands/sparse_kernel.hpp"
#include "proptest/judge/truth/sparse_truth.hpp"

/// Work of `attest check-sparse`: kernels of sparse Q, K and V, forward and backward, against the
/// float64 reference of the densified problem.
namespace attest::certify {

/// One pass of one kernel: O and LSE, or dQ, dK and dV.
struct SparseFinding {
  std::string kernel, pass;  // "forward" or "backward"
  proptest::LawResult result;
};

/// The kernel's forward pass, then its backward pass given what that stored.
/// [certify/sparse_inputs/sparse_inputs_check_test "wrong kernels of sparse inputs are refused"]
std::vector<SparseFinding> check_sparse_kernel(const SparseKernel& kernel,
                                               const proptest::SparseTruth& truth);

/// The gravest.
Verdict verdict_of(const std::vector<SparseFinding>& findings);

/// [{"kernel", "pass", "verdict", "message", "outputs": [{"output", "verdict", "elements",
/// "error_over_bound"}]}]
nlohmann::json findings_json(const std::vector<SparseFinding>& findings);

}  // namespace attest::certify
