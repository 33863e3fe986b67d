#pragma once

#include <string_view>
#include <vector>

#include "core/numerics.hpp"

namespace attest::proptest {

/// A contract without one of the errors it allows.
struct WithoutTerm {
  std::string_view term;  // "accumulation", "exp", "output rounding", …
  Numerics numerics;
};

/// One for every error that the contract allows. Bounds under it, against those under the contract,
/// say how much of a bound comes from the term.  [proptest/judge/contract_terms_test]
std::vector<WithoutTerm> without_each_term(const Numerics& numerics);

}  // namespace attest::proptest
