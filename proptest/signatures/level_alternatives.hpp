#pragma once

#include <vector>

#include "proptest/signatures/alternative.hpp"

/// Results of kernels whose mistakes show where scores are far below 0: lanes past the end have
/// score 0, and a finite number stands for minus infinity.
namespace attest::proptest {

/// O and LSE of kernels whose running maximum starts too high; none where no row is that low.
/// [proptest/signatures/signature_test "every signature is of its defect"]
std::vector<Alternative> low_forward_alternatives(const Scene& scene);

/// Gradients of kernels that give weights to lanes past the end; none where no row is that low.
/// [proptest/signatures/signature_test "every signature is of its defect"]
std::vector<Alternative> low_backward_alternatives(const Scene& scene);

}  // namespace attest::proptest
