#include "certify/plan/coverage.hpp"

#include "core/features/score_features.hpp"
#include "core/testing/catch.hpp"

namespace attest::certify {
namespace {

using Words = std::vector<std::string>;

constexpr std::uint32_t kForms =
    ATTEST_BOOLEAN_MASK | ATTEST_BLOCK_MASK | ATTEST_CSR_MASK | ATTEST_NM_MASK;

Words of(const char* problem, std::uint32_t features = kForms) {
  return exercised_by(Problem::parse(problem), features);
}

TEST_CASE("a plain problem exercises its dtype only", "[coverage]") {
  CHECK(of("sq=3,d=4") == Words{"f32"});
  CHECK(of("sq=3,d=4,dtype=bf16") == Words{"bf16"});
}

TEST_CASE("every feature of a problem is named", "[coverage]") {
  CHECK(of("sq=3,d=4,mask=causal_tl") == Words{"f32", "causal_top_left"});
  CHECK(of("sq=3,d=4,mask=causal_br") == Words{"f32", "causal_bottom_right"});
  CHECK(of("sq=3,d=4,mask=window_1_1") == Words{"f32", "window"});
  CHECK(of("b=2,sq=3,d=4,mask=lengths_3_2") == Words{"f32", "key_lengths"});
  CHECK(of("sq=3,d=4,hq=4,hkv=2") == Words{"f32", "gqa"});
  CHECK(of("sq=3,d=4,dv=2") == Words{"f32", "head_dim_v"});
  for (const ScoreFeature& feature : score_features()) {
    const std::string problem = std::string("sq=3,d=4,") + feature.word + "=" + feature.example;
    CHECK(of(problem.c_str()) == Words{"f32", feature.word});
  }
  CHECK(of("sq=3,d=4,scale=0") == Words{"f32", "any_scale"});
  CHECK(of("sq=2,sk=3,d=4") == Words{"f32", "cross_lengths"});
  CHECK(of("sq=3,d=4,splits=2") == Words{"f32", "split_invariant"});
  // Bottom-right, the first of three queries sees no key of two.
  CHECK(of("sq=3,sk=2,d=4,mask=causal_br") ==
        Words{"f32", "causal_bottom_right", "cross_lengths", "empty_rows"});
}

TEST_CASE("a mask's pairs exercise the form in which they are given", "[coverage]") {
  CHECK(of("sq=4,d=4,mask=random_100_1") == Words{"f32", "boolean_mask"});
  const char* const blocks = "sq=4,d=4,mask=blockband_2x2_1";
  CHECK(of(blocks) == Words{"f32", "block_mask"});
  CHECK(of(blocks, kForms & ~std::uint32_t{ATTEST_BLOCK_MASK}) == Words{"f32", "csr_mask"});
  CHECK(of(blocks, ATTEST_BOOLEAN_MASK) == Words{"f32", "boolean_mask"});
  CHECK(of("sq=4,d=4,mask=nm_2_2_1") == Words{"f32", "nm_mask"});
  CHECK(of("sq=4,d=4,mask=pairs_100_1+causal_tl") == Words{"f32", "causal_top_left", "csr_mask"});
}

TEST_CASE("limits are read as words", "[coverage]") {
  attest_description description{};
  CHECK(limit_words(description).empty());
  attest_limits limits{};
  description.limits = &limits;
  CHECK(limit_words(description).empty());
  limits.only = ATTEST_ONLY_CAUSAL | ATTEST_ONLY_ONE_SCALE;
  limits.softmax_scale = 0.5;
  limits.seqlen_q = {1, 1, 0};
  limits.seqlen_k = {64, 4096, 64};
  limits.head_dims[0] = 64;
  limits.head_dims[1] = 128;
  limits.most_batch = 4;
  CHECK(limit_words(description) ==
        std::vector<std::string>{"only_causal", "only_one_scale", "scale=0.5", "seqlen_q=1",
                                 "seqlen_k>=64", "seqlen_k<=4096", "seqlen_k%64", "head_dim=64|128",
                                 "batch<=4"});
}

}  // namespace
}  // namespace attest::certify
