#pragma once

#include <string>
#include <vector>

#include "core/abi/attest_kernel.h"
#include "core/tensor.hpp"

/// How others decide that an attention kernel is right: fixed tolerances on one random shape.
namespace attest::certify {

/// One output: what the kernel gave, the exact result, and what a plain kernel of the same dtype
/// gave.
struct JudgedOutput {
  std::string name;
  Tensor got, exact, plain;
};

struct PublishedRule {
  const char* name;
  const char* source;
  bool (*accepts)(const JudgedOutput& output);
};

/// allclose(rtol=1e-2, atol=1e-2); FlashAttention's (twice the plain kernel's worst error, three
/// times for gradients); PyTorch's test_transformers; oneDNN's test_sdpa.
/// [certify/score/defect_score_test]
const std::vector<PublishedRule>& published_rules();

/// Names of the rules that accept all outputs of a kernel on one random problem: O, dQ, dK, dV, or
/// dX. Faults beside the results, and LSE, are not what these rules look at.
/// `plain` claims what the kernel does; the problem is f16, of the loss gradient f32.
/// [certify/score/defect_score_test "rules"]
std::vector<std::string> accepting_rules(const attest_kernel& kernel, const attest_kernel& plain);

}  // namespace attest::certify
