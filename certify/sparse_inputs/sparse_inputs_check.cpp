#include "certify/sparse_inputs/sparse_inputs_check.hpp"

#include <nlohmann/json.hpp>

namespace attest::certify {

std::vector<SparseFinding> check_sparse_kernel(const SparseKernel& kernel,
                                               const proptest::SparseTruth& truth) {
  const SparseOutputs stored = kernel.forward(truth.operands());
  std::vector<SparseFinding> findings{
      {kernel.name, "forward", truth.judge(stored, kernel.subtracted)}};
  const SparseGradients gradients = truth.of_size(stored)
                                        ? kernel.backward(truth.operands(), truth.dO(), stored)
                                        : SparseGradients{};
  findings.push_back({kernel.name, "backward", truth.judge(stored, gradients)});
  return findings;
}

Verdict verdict_of(const std::vector<SparseFinding>& findings) {
  Verdict verdict = Verdict::unsupported;
  for (const SparseFinding& finding : findings) verdict = graver(verdict, finding.result.verdict);
  return verdict;
}

nlohmann::json findings_json(const std::vector<SparseFinding>& findings) {
  nlohmann::json list = nlohmann::json::array();
  for (const SparseFinding& finding : findings) {
    nlohmann::json outputs = nlohmann::json::array();
    for (const proptest::Comparison& comparison : finding.result.comparisons) {
      outputs.push_back({{"output", comparison.output},
                         {"verdict", name(comparison.verdict)},
                         {"elements", comparison.elements},
                         {"error_over_bound", comparison.ratio}});
    }
    list.push_back({{"kernel", finding.kernel},
                    {"pass", finding.pass},
                    {"verdict", name(finding.result.verdict)},
                    {"message", finding.result.message},
                    {"outputs", outputs}});
  }
  return list;
}

}  // namespace attest::certify
