#include "proptest/laws/trials/exactness.hpp"

#include <cmath>

namespace attest::proptest {

bool holds_integers(double roundoff, double largest) { return largest * roundoff <= 1; }

bool adds_exactly(const Numerics& numerics, const IntegerSums& sums) {
  for (const double operand :
       {numerics.input_roundoff, numerics.scaled_q_roundoff, numerics.operand_roundoff}) {
    if (!holds_integers(operand, sums.largest_operand)) return false;
  }
  // A block is aligned to its largest term and cut off below.
  const bool aligned = numerics.accumulation != Accumulation::fused_blocks ||
                       sums.largest_sum <= std::exp2(numerics.fused_fraction_bits);
  return aligned && holds_integers(numerics.accumulator_roundoff, sums.largest_sum);
}

bool weighs_exactly(const Numerics& numerics) { return numerics.exp_zero_is_one; }

}  // namespace attest::proptest
