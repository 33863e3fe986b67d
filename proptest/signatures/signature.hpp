#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "proptest/judge/run.hpp"
#include "proptest/signatures/alternative.hpp"

/// Names the mistake a kernel probably makes, by its results.
namespace attest::proptest {

/// A known mistake whose results are the kernel's.
struct Signature {
  std::string name;       // "top_left_causal"
  std::string statement;  // "the result with top-left causal alignment"
};

/// The known mistakes that explain a kernel's failure. Each one's exact results lie outside the
/// truth's bounds on `shrunk` or on `found`, as the kernel's do there, and the kernel's lie within
/// the mistake's own bounds on both and on a few other cases like them. Empty when no mistake of
/// the list explains the failure, when the kernel did not complete a case, or when its contract has
/// no bounds.
/// Cost:     problems of more than 2^21 products per pass are left out; else about 40 references.
/// [proptest/signatures/signature_test "every signature is of its defect",
/// "no signature is of another defect"]
std::vector<Signature> signatures_of(const attest_kernel& kernel, const Case& shrunk,
                                     const Case& found);

/// Returns the known mistakes whose results those of one completed run are: on these inputs alone,
/// so that several mistakes may agree. Empty where every output is right, and where so few elements
/// agree, or with so few digits, that one of 40 mistakes does so by chance. Requires: a truth of
/// everything, not of a sample. Cost: about 40 references, of any size. [python/api/judgement_test
/// "a known mistake is named", "by chance"]
std::vector<Signature> signatures_of(const Scene& scene);

}  // namespace attest::proptest
