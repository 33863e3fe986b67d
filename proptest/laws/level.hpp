#pragma once

#include <string>

#include "core/abi/attest_kernel.h"
#include "proptest/judge/run.hpp"

/// Scores far from 0 as a whole. Lanes past the end of a sequence hold scores of 0, and masks may
/// hold -10^4 for minus infinity: whether a result shows them depends on the level of a row.
namespace attest::proptest {

/// A case's problem and values with every score of a row shifted by one amount.
struct Levelled {
  Problem problem;  // the case's, without a softcap and with a scale that is not 0
  InputValues values;
  std::string words;  // "scores of every row at -2.14e+03", "… between -812 and 812"
};

/// The first column of Q becomes a power of two and that of K one number, so that their products
/// shift all scores of a row exactly alike. By the seed all rows are shifted down (most
/// cases), up, or each by an amount of its own; by 75 to 10^5 as far as the dtype and what the
/// description says of rounding leave digits. [proptest/laws/level_test]
Levelled at_level(const attest_description& description, const Case& c);

}  // namespace attest::proptest
