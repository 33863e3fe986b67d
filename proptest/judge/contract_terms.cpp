#include "proptest/judge/contract_terms.hpp"

namespace attest::proptest {

std::vector<WithoutTerm> without_each_term(const Numerics& numerics) {
  std::vector<WithoutTerm> terms;
  const auto add = [&](std::string_view term, double allowed, const auto& remove) {
    if (!(allowed > 0)) return;
    terms.push_back({term, numerics});
    remove(terms.back().numerics);
  };
  add("accumulation", numerics.accumulator_roundoff, [](Numerics& n) {
    if (n.accumulator_underflow > 0) {  // low: what is not a sum of products is float32 already
      n.accumulator_roundoff = unit_roundoff(DType::f32);
      n.accumulator_underflow = 0;
      return;
    }
    constexpr double kExact = 0x1p-20;  // the error of exp is in units of this roundoff, and stays
    n.accumulator_roundoff *= kExact;
    n.exp_ulps /= kExact;
    n.accumulation = Accumulation::nearest;
  });
  add("exp", numerics.exp_ulps, [](Numerics& n) { n.exp_ulps = 0; });
  add("output rounding", numerics.output_roundoff,
      [](Numerics& n) { n.output_roundoff = n.output_underflow = 0; });
  add("cast of P", numerics.p_roundoff, [](Numerics& n) { n.p_roundoff = n.p_underflow = 0; });
  add("cast of dP", numerics.dp_roundoff, [](Numerics& n) { n.dp_roundoff = n.dp_underflow = 0; });
  add("rounding of scores", numerics.score_roundoff,
      [](Numerics& n) { n.score_roundoff = n.score_underflow = 0; });
  add("input rounding", numerics.input_roundoff, [](Numerics& n) { n.input_roundoff = 0; });
  add("rounding of operands", numerics.operand_roundoff,
      [](Numerics& n) { n.operand_roundoff = 0; });
  add("rounding of scaled Q", numerics.scaled_q_roundoff,
      [](Numerics& n) { n.scaled_q_roundoff = 0; });
  add("flushed subnormals", numerics.flushed_below, [](Numerics& n) {
    for (double* lost : {&n.p_underflow, &n.output_underflow}) {
      if (*lost == n.flushed_below) *lost = 0;
    }
    n.flushed_below = 0;
  });
  add("merges through LSE", static_cast<double>(numerics.lse_splits),
      [](Numerics& n) { n.lse_splits = 0; });
  add("sums of a group", numerics.gqa_partial_roundoff,
      [](Numerics& n) { n.gqa_partial_roundoff = n.gqa_partial_underflow = 0; });
  add("sums over the heads of a group", numerics.gqa_sum_roundoff,
      [](Numerics& n) { n.gqa_sum_roundoff = n.gqa_sum_underflow = 0; });
  add("sums of dK and dV", numerics.dkv_roundoff,
      [](Numerics& n) { n.dkv_roundoff = n.dkv_underflow = 0; });
  add("sums of dQ", numerics.dq_roundoff, [](Numerics& n) { n.dq_roundoff = n.dq_underflow = 0; });
  return terms;
}

}  // namespace attest::proptest
