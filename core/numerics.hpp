#pragma once

#include <cstdint>

#include "core/abi/attest_kernel.h"
#include "core/contract/conventions.hpp"
#include "core/dtype/dtype.hpp"

namespace attest {

/// How sums of products are accumulated; see attest_accumulation.
enum class Accumulation : std::uint8_t { nearest, truncating, fused_blocks };

/// Order of a softmax step and the cast of P: the step comes before the cast, or after.
enum class CastOrder : std::uint8_t { before, after };

/// Source of backward's delta: the row sums of dO * O with the O that forward stored, or those of
/// its own P * dP.
enum class DeltaSource : std::uint8_t { outputs, pairs };

/// The precision contract of a kernel with every default filled in: what the error bounds are
/// derived from (docs/theory/error-bounds/README.md). Roundoffs are unit roundoffs; 0 means no
/// rounding.
struct Numerics {
  Accumulation accumulation = Accumulation::nearest;
  double accumulator_roundoff = 0x1p-24;
  double accumulator_underflow = 0;  // absolute error where a sum is subnormal; 0: f32 or f64
  // Sums of products, where attention's bounds tell them from other arithmetic; 0: as accumulator.
  double sum_roundoff = 0;
  double sum_underflow = 0;
  std::int64_t fused_block = 0;
  int fused_fraction_bits = 0;
  std::int64_t summation_depth = 0;  // 0: not declared, as many additions as terms
  double input_roundoff = 0;         // u_in
  double operand_roundoff = 0;       // u_x: of every product, beside u_in
  double scaled_q_roundoff = 0;      // u_q
  double flushed_below = 0;          // w: operands and results below it may become 0; 0: none do
  double p_roundoff = 0;             // u_p
  double p_underflow = 0;            // eta_p: absolute error of casting a small P
  CastOrder normalize = CastOrder::after;  // before: P is divided by its sum, then cast
  CastOrder row_sum = CastOrder::before;   // after: the row sum adds the cast P
  double exp_ulps = 2;
  bool exp_zero_is_one = true;       // and the weight of a largest score is exp(0)
  std::int64_t lse_split_keys = 0;   // keys that enter at each merge; 0: not said
  std::int64_t lse_splits = 0;       // merges through LSE, one after another
  double gqa_partial_roundoff = 0;   // dK, dV of a query head rounded before the group's sum
  double gqa_partial_underflow = 0;  // and the absolute error where they are subnormal
  double gqa_sum_roundoff = 0;       // each addition of a query head rounded to this; 0: none is
  double gqa_sum_underflow = 0;
  double dq_roundoff = 0;  // each addition to dQ rounded to this; 0: as accumulator
  double dq_underflow = 0;
  double dkv_roundoff = 0;  // each addition to dK or dV
  double dkv_underflow = 0;
  double dp_roundoff = 0;  // dP rounded to this before delta is subtracted; 0: as accumulator
  double dp_underflow = 0;
  double score_roundoff = 0;  // scores and their parts rounded to this; 0: as accumulator
  double score_underflow = 0;
  DeltaSource delta = DeltaSource::outputs;
  double output_roundoff = 0x1p-24;    // u_out
  double output_underflow = 0x1p-150;  // eta_out

  bool operator==(const Numerics&) const = default;
};

/// Fills in the defaults of a declared contract for tensors of `dtype`.
/// Requires: known enum values, non-negative numbers. Else throws InvalidProblem.
/// [core/registry_test "impossible contracts"]
Numerics resolve(const attest_numerics& declared, DType dtype);

/// The conventions of a description.
Conventions conventions_of(const attest_description& description);

}  // namespace attest
