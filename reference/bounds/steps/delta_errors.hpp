#pragma once

#include <vector>

#include "reference/bounds/steps/entry_errors.hpp"

namespace attest::reference {

/// Errors of delta in the block's rows where it is the row sum of P o dP, which a kernel declares
/// (docs/theory/error-bounds/backward.md, "Delta from P"): sets delta_proved, delta_linear,
/// delta_deviation and delta_bias. Does nothing where delta is made of the stored O. Cost: five
/// products as large as that of the scores. [proptest/suites/delta_validation_test]
void add_delta_errors(const GradientInputs& in, const RowBlock& block,
                      const std::vector<KeyTile>& tiles, RowErrors& rows);

}  // namespace attest::reference
