#include "python/api/contract.hpp"

#include <sstream>
#include <string>

#include "core/contract/contract_text.hpp"
#include "core/error.hpp"
#include "core/numerics.hpp"
#include "core/testing/catch.hpp"
#include "reference/bounds/steps/roundoff.hpp"

namespace attest::python {
namespace {

void refused(const std::string& text, const std::string& words) {
  INFO(text);
  CHECK_THROWS_WITH(parse_contract(text), Catch::Contains(words));
  CHECK_THROWS_AS(parse_contract(text), InvalidProblem);
}

TEST_CASE("a contract is spelled by a preset, by fields, or by both", "[python]") {
  const Numerics plain = resolve({}, DType::bf16);
  CHECK(resolve(parse_contract("").numerics, DType::bf16) == plain);
  CHECK(resolve(parse_contract("f32").numerics, DType::bf16) == plain);
  CHECK(parse_contract("p_cast_to_input").numerics.p_cast == ATTEST_INPUT_DTYPE);
  CHECK(parse_contract("p_cast=bf16").numerics.p_cast == 1 + ATTEST_BF16);
  const attest_description both = parse_contract("tensor_core,exp_ulps=4,empty_row=nan");
  CHECK(both.numerics.accumulation == ATTEST_FUSED_BLOCKS);
  CHECK(both.numerics.exp_ulps == 4);
  CHECK(both.empty_row == ATTEST_NAN);
  CHECK(both.past_length == ATTEST_PAST_EMPTY_ROW);
  CHECK(parse_contract("f32,past_length=not_written").past_length == ATTEST_PAST_NOT_WRITTEN);
  CHECK(parse_contract("lse_base=two").numerics.lse_base_two == 1);
  CHECK(parse_contract("nondeterministic=1").numerics.nondeterministic == 1);
}

TEST_CASE("a contract is spelled as it is read in every field", "[python]") {
  CHECK(contract_text(parse_contract("f32").numerics).empty());
  std::string spelled;
  for (const std::string text :
       {"accumulation=truncating,accumulator=bf16,summation_depth=70,p_cast=input,p_normalized=1",
        "accumulation=fused_blocks,fused_block=8,fused_fraction_bits=24,exp_ulps=4.5",
        "input_roundoff=0.00390625,operand_roundoff=0.0009765625,scaled_q_roundoff=0.001",
        "sum_after_cast=1,flushes_p=1,exp_zero_not_one=1,lse_splits=4,lse_split_keys=64",
        "gqa_partial=bf16,gqa_accumulator=f16,dq_accumulator=f64,dkv_accumulator=f32",
        "dp_cast=input,score_cast=f16,delta_from_p=1,flushes_subnormals=1,lse_base=two,"
        "nondeterministic=1"}) {
    CHECK(contract_text(parse_contract(text).numerics) == text);
    spelled += "," + text;
  }
  // The refusal of an unknown field lists all of them.
  std::string known;
  try {
    parse_contract("unknown=1");
  } catch (const InvalidProblem& refusal) {
    known = refusal.what();
  }
  const std::string before = "(one of ";
  std::istringstream names(known.substr(known.rfind(before) + before.size()));
  std::size_t fields = 0;
  for (std::string name; names >> name; ++fields) {
    name = name.substr(0, name.find_first_of(",)"));
    INFO(name);
    const bool of_numerics = name != "empty_row" && name != "past_length";
    CHECK((spelled.find("," + name + "=") != std::string::npos) == of_numerics);
  }
  CHECK(fields > 1);
  attest_numerics numerics{};
  numerics.exp_ulps_of[ATTEST_BF16] = 839;
  CHECK(contract_text(numerics) == "exp_ulps_of[bf16]=839");
}

TEST_CASE("every preset has bounds in every dtype", "[python]") {
  for (const Preset& preset : presets()) {
    for (const DType dtype : {DType::f64, DType::f32, DType::bf16, DType::f16}) {
      INFO(preset.name);
      CHECK_NOTHROW(resolve(parse_contract(preset.name).numerics, dtype));
    }
  }
  CHECK(resolve(parse_contract("tf32").numerics, DType::f32).operand_roundoff == 0x1p-10);
}

// Blocks and alignment bits as Khattak and Mikaitis 2025 (arXiv:2512.07004) found them.
TEST_CASE("presets of tensor cores cover A100, H100 and B200, and not V100", "[python]") {
  const auto error = [](const std::string& contract, int terms) {
    return reference::accumulation_error(resolve(parse_contract(contract).numerics, DType::f16),
                                         terms);
  };
  const auto blocks = [](int block, int bits) {
    return "accumulation=fused_blocks,fused_block=" + std::to_string(block) +
           ",fused_fraction_bits=" + std::to_string(bits);
  };
  constexpr int kMostTerms = 4096;
  for (int terms = 1; terms <= kMostTerms; ++terms) {
    INFO(terms << " terms");
    CHECK(error(blocks(8, 24), terms) == error("tensor_core", terms));
    CHECK(error(blocks(16, 25), terms) <= error("tensor_core", terms));
    CHECK(error(blocks(4, 24), terms) == error("tf32", terms));
    CHECK(error(blocks(8, 25), terms) <= error("tf32", terms));
    CHECK(error(blocks(4, 23), terms) > error("tensor_core", terms));
  }
}

TEST_CASE("a contract that nobody can keep is refused by field and value", "[python]") {
  refused("tensor_cores", "unknown preset 'tensor_cores'; did you mean 'tensor_core'?");
  refused("p_casts=bf16", "unknown field 'p_casts'; did you mean 'p_cast'?");
  refused("p_cast=bf17", "one of f64 f32 bf16 f16 input");
  refused("exp_ulps=-1", "exp_ulps=-1 must be a number, 0 or more");
  refused("exp_ulps=nan", "exp_ulps=nan must be");
  refused("exp_ulps=1e9", "exp_ulps=1e9 must be");
  refused("input_roundoff=2", "input_roundoff=2 must be");
  refused("lse_splits=2.5", "a whole number");
  refused("p_normalized=yes", "one of 0 1");
}

}  // namespace
}  // namespace attest::python
