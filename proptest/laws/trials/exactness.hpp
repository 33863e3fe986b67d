#pragma once

#include <cstdint>

#include "core/numerics.hpp"

/// When a contract promises exact results of a probe: which of its fields can take them away
/// (docs/theory/error-bounds/exact-probes.md, "Laws and fields").
namespace attest::proptest {

/// Sums of products of integers, or of multiples of one power of two, in units of it.
struct IntegerSums {
  double largest_operand;
  double largest_sum;  // of the products' magnitudes
};

/// Tells whether the contract adds up the integers exactly, whatever the order.
/// Requires: numbers below the range's ends.  [proptest/suites/exactness_test]
bool adds_exactly(const Numerics& numerics, const IntegerSums& sums);

/// Tells whether a type of this unit roundoff holds all integers up to `largest`; 0 holds all.
bool holds_integers(double roundoff, double largest);

/// Tells whether the largest score weighs exactly 1 and no other step of the softmax rounds, where
/// all other weights vanish or equal it.
bool weighs_exactly(const Numerics& numerics);

}  // namespace attest::proptest
