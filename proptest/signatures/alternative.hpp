#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "proptest/judge/truth/truth.hpp"

/// Wrong results of kernels with a known mistake, each with bounds of its own.
namespace attest::proptest {

/// Value that one output would have.
struct Expected {
  std::string output;  // "O", "LSE", "dQ", …
  Tensor value;
  reference::ErrorBound bound;
};

struct Alternative {
  std::string name;       // "top_left_causal"
  std::string statement;  // what the result equals: "the result with top-left causal alignment"
  std::vector<Expected> outputs;
};

/// One completed run of a kernel with its truth.
struct Scene {
  const attest_description& description;
  const Problem& problem;
  const InputValues& values;
  Direction direction;
  std::uint64_t seed;
  const Truth& truth;
  const KernelRun& run;
};

/// Name and statement of an alternative. A name may have several, each of another tiling.
using Suspect = std::pair<std::string, std::string>;
/// Which alternatives are asked for; null: all of them.
using Suspects = const std::set<Suspect>*;

/// O and LSE as kernels with a known mistake give them, those that apply to the problem.
/// [proptest/signatures/signature_test "every signature is of its defect"]
std::vector<Alternative> forward_alternatives(const Scene& scene, Suspects only);

/// The same for the gradients of a kernel whose O and LSE are right. Requires: a backward run.
/// [proptest/signatures/signature_test "every signature is of its defect"]
std::vector<Alternative> backward_alternatives(const Scene& scene, Suspects only);

/// The same problem with a mask as a kernel with a known mistake takes it.
struct MaskMistake {
  std::string name, words;  // "with top-left causal alignment"
  Problem problem;
};
std::vector<MaskMistake> mask_mistakes(const Problem& problem);

/// Bounds of `value`, a result with other terms than the truth: the truth's bound as a multiple of
/// the sum of absolute terms, and the rounding of the output to its dtype.
reference::ErrorBound bound_like(const reference::ErrorBound& of_truth, const Tensor& truth_terms,
                                 const Tensor& value, const Tensor& terms, DType output);

}  // namespace attest::proptest
