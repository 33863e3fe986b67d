#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/dtype/dtype.hpp"
#include "proptest/testing/validation.hpp"
#include "proptest/values/values.hpp"

/// How loose the bounds are: medians of bound over error, probabilistic strength
/// (docs/theory/error-bounds/measured.md, "Tightness").
namespace attest::proptest {

/// Median of each output; 0 where there is no error to compare with, above all where most results
/// are exact or underflow.
struct Medians {
  double O, LSE, dQ, dK, dV, dSinks = 0, dBias = 0;
};

struct Tightness {
  Values values;
  DType dtype;
  Medians of;
};

/// As the design's document measured them, on other and longer shapes of the same families; those
/// of gradients are rounded to whole numbers. Three figures of dQ are left out, for they do not
/// hold here (docs/decisions/0011-medians-of-bounds.md).
const std::vector<Tightness>& medians_of_document();

/// As first measured on the shapes and elements of a test run: what notices a bound that has become
/// looser. With many more elements, as nightly, other shapes weigh most and medians move; they are
/// held to the document's alone. The second of kernels that make delta of P, which changes dQ and
/// dK alone.
const std::vector<Tightness>& first_medians();
const std::vector<Tightness>& first_medians_of_delta();

/// Medians of dSinks and dBias, on shapes that have sinks and biases, as first measured.
const std::vector<Tightness>& first_medians_of_features();

/// How many medians of a cell were compared with a table, and those more than half as large again.
struct Looseness {
  std::size_t compared = 0;
  std::vector<std::string> looser;
};

/// Compares all that the table has but those of one-hot, V = 1 and scores of 10^4 in which most
/// results are exact. The table's medians of gradients are rounded by up to `rounding`.
/// [proptest/suites/validation_test "a bound twice as loose is noticed"]
Looseness looseness(const Cell& cell, const std::vector<Tightness>& table, double rounding);

}  // namespace attest::proptest
