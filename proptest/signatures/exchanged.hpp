#pragma once

#include <string>
#include <vector>

#include "proptest/values/values.hpp"

namespace attest::proptest {

/// Inputs as a kernel reads them that exchanges two axes of equal extent.
struct ExchangedInputs {
  std::string name, words;  // "k_transposed", "where K is read with …"
  InputValues values;
};

/// Returns the exchanges that the extents allow; none of extents of 1.
/// [proptest/signatures/signature_test "every signature is of its defect"]
std::vector<ExchangedInputs> exchanged_inputs(const InputValues& values);

}  // namespace attest::proptest
