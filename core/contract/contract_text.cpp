#include "core/contract/contract_text.hpp"

#include "core/dtype/dtype.hpp"
#include "core/text/shortest.hpp"

namespace attest {
namespace {

// Fields joined by commas; what is 0 is not there.
class Fields {
 public:
  void add(const std::string& name, const std::string& value) {
    text_ += (text_.empty() ? "" : ",") + name + "=" + value;
  }
  void number(const std::string& name, double value) {
    if (value != 0) add(name, shortest(value));
  }
  // 0, 1 + attest_dtype or ATTEST_INPUT_DTYPE.
  void type(const std::string& name, std::int32_t value) {
    if (value == ATTEST_INPUT_DTYPE) {
      add(name, "input");
    } else if (value > 0 && value <= static_cast<std::int32_t>(kDTypes.size())) {
      add(name, std::string(kDTypes[static_cast<std::size_t>(value - 1)].name));
    }
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace

std::string contract_text(const attest_numerics& n) {
  Fields fields;
  if (n.accumulation == ATTEST_TRUNCATING) fields.add("accumulation", "truncating");
  if (n.accumulation == ATTEST_FUSED_BLOCKS) fields.add("accumulation", "fused_blocks");
  fields.type("accumulator", n.accumulator);
  fields.number("fused_block", n.fused_block);
  fields.number("fused_fraction_bits", n.fused_fraction_bits);
  fields.number("summation_depth", static_cast<double>(n.summation_depth));
  fields.number("input_roundoff", n.input_roundoff);
  fields.number("operand_roundoff", n.operand_roundoff);
  fields.number("scaled_q_roundoff", n.scaled_q_roundoff);
  fields.type("p_cast", n.p_cast);
  fields.number("p_normalized", n.p_normalized);
  fields.number("sum_after_cast", n.sum_after_cast);
  fields.number("flushes_p", n.flushes_p);
  fields.number("exp_ulps", n.exp_ulps);
  for (const DTypeFacts& row : kDTypes) {
    fields.number("exp_ulps_of[" + std::string(row.name) + "]", n.exp_ulps_of[row.code]);
  }
  fields.number("exp_zero_not_one", n.exp_zero_not_one);
  fields.number("lse_splits", n.lse_splits);
  fields.number("lse_split_keys", n.lse_split_keys);
  fields.type("gqa_partial", n.gqa_partial);
  fields.type("gqa_accumulator", n.gqa_accumulator);
  fields.type("dq_accumulator", n.dq_accumulator);
  fields.type("dkv_accumulator", n.dkv_accumulator);
  fields.type("dp_cast", n.dp_cast);
  fields.type("score_cast", n.score_cast);
  fields.number("delta_from_p", n.delta_from_p);
  fields.number("flushes_subnormals", n.flushes_subnormals);
  if (n.lse_base_two != 0) fields.add("lse_base", "two");
  fields.number("nondeterministic", n.nondeterministic);
  return fields.text();
}

}  // namespace attest
