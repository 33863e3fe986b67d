#include "certify/plan/pairs/pairwise.hpp"

#include <algorithm>
#include <cstdio>
#include <map>
#include <string>

#include "certify/plan/pairs/score_levels.hpp"
#include "core/rng.hpp"
#include "core/testing/catch.hpp"
#include "cpu/register.hpp"
#include "fixtures/defects/defect.hpp"

namespace attest::certify {
namespace {

Pairs met_by(const attest_description& description, const std::vector<proptest::Case>& cases) {
  Pairs met;
  for (const proptest::Case& c : cases) {
    for (const Direction direction : claimed_directions(description, c.problem)) {
      met.merge(pairs_of(c.problem, direction));
    }
  }
  return met;
}

TEST_CASE("pairs of a problem", "[pairwise]") {
  const Pairs pairs =
      pairs_of(Problem::parse("hq=4,hkv=2,sq=17,sk=33,d=8,dv=4,mask=window_3_0,dtype=bf16"),
               Direction::backward);
  CHECK(pairs.size() == 36);
  for (const char* pair :
       {"mask=window dtype=bf16", "heads=grouped layout=bshd", "sizes=fewer_queries dv=other",
        "dv=other direction=backward", "mask=window direction=backward", "mask=window batch=one"}) {
    INFO(pair);
    CHECK(pairs.count(pair) == 1);
  }
  const auto has = [](const char* problem, const char* pair) {
    INFO(problem << " " << pair);
    CHECK(pairs_of(Problem::parse(problem), Direction::forward).count(pair) == 1);
  };
  has("sq=32,d=8,mask=causal_br", "mask=causal_br sizes=even");
  has("sq=31,d=8,mask=causal_tl,layout=bhsd", "mask=causal_tl layout=bhsd");
  has("sq=33,sk=2,d=8,strides=padded", "layout=strided sizes=more_queries");
  has("b=2,sq=3,d=8,mask=lengths_2_3+causal_br", "mask=lengths sizes=ragged");
  has("d=8,mask=cu_3x5_2x2", "mask=packed layout=thd");
  has("sq=3,d=8,mask=random_50_1", "mask=boolean direction=forward");
  has("b=2,sq=1,sk=9,d=8,mask=window_3_0", "mask=window sizes=one_query");
  has("b=2,sq=9,sk=1,d=8", "sizes=one_key batch=several");
  has("sq=1,d=8", "sizes=ragged batch=one");
  has("b=2,sq=3,d=8,mask=lengths_2_3+window_1_1", "mask=window_lengths sizes=ragged");
  has("sq=3,sk=9,d=8,mask=random_50_1+window_1_1", "mask=window_boolean sizes=fewer_queries");
  has("sq=3,d=8,mask=random_50_1+causal_br", "mask=boolean sizes=ragged");
  has("d=8,mask=cu_3x5_2x2+random_50_1+window_1_1", "mask=packed_boolean layout=thd");
  has("d=8,mask=cu_3x5_2x2+window_1_1", "mask=packed_window batch=several");
  has("sq=3,d=8,scale=-0.5,softcap=30", "scores=negative_softcap direction=forward");
  has("sq=3,d=8,scale=-0.5,softcap=30,alibi=standard,mask=causal_tl",
      "mask=causal_tl scores=softcap_alibi");
  has("sq=3,d=8,scale=-0.5", "sizes=ragged scores=negative");
  has("sq=3,d=8,scale=0", "dv=equal scores=scaled");
  has("sq=3,d=8,mask=window_-1_2", "mask=offset_window sizes=ragged");
  has("hq=2,sq=3,d=8,head_mask=hk_60_1", "sizes=ragged scores=head_mask");
  has("b=2,sq=3,d=8,sinks=drawn_1,query_lengths=3_1", "scores=sinks_query_lengths batch=several");
}

TEST_CASE("what is claimed can be met", "[pairwise]") {
  attest_description description = fixtures::defective_kernel(fixtures::Defect::none).description;
  const Pairs all = claimed_pairs(description);
  CHECK(all.count("mask=packed layout=thd") == 1);
  CHECK(all.count("mask=packed layout=bshd") == 0);
  CHECK(all.count("mask=window direction=backward") == 1);
  CHECK(all.count("mask=window direction=loss_gradient") == 0);
  CHECK(all.count("dtype=f64 heads=equal") == 0);
  description.features &= ~std::uint32_t{ATTEST_WINDOW};
  description.directions = ATTEST_FORWARD;
  const Pairs fewer = claimed_pairs(description);
  CHECK(fewer.size() < all.size());
  CHECK(std::none_of(fewer.begin(), fewer.end(), [](const std::string& pair) {
    return pair.find("window") != std::string::npos || pair.find("backward") != std::string::npos;
  }));
  description.features &= ~std::uint32_t{ATTEST_EMPTY_ROWS};  // what has no empty row stays
  CHECK(claimed_pairs(description).count("mask=causal_tl sizes=more_queries") == 1);
  CHECK(claimed_pairs(description).count("mask=causal_br sizes=more_queries") == 1);
  description.features &= ~std::uint32_t{ATTEST_QUERY_LENGTHS};  // no more queries than keys exist
  CHECK(claimed_pairs(description).count("mask=causal_br sizes=more_queries") == 0);
}

// Features that stand in no level together meet by chance: docs/how-to/long-campaigns.md, "Pairs",
// lists them.
TEST_CASE("levels of the scores", "[pairwise]") {
  std::string levels;
  for (const ScoreLevel& level : score_levels()) levels += level.name + " ";
  CHECK(levels ==
        "plain scaled negative softcap alibi sinks bias head_mask query_lengths shared_kv "
        "negative_softcap negative_sinks softcap_alibi softcap_sinks softcap_bias alibi_sinks "
        "alibi_bias sinks_bias sinks_head_mask sinks_query_lengths bias_head_mask "
        "bias_query_lengths head_mask_query_lengths bias_holes paged_kv_1 paged_kv_3 paged_kv_16 "
        "paged_kv_64 ");
}

TEST_CASE("masks of pairs come in a form that is claimed", "[pairwise]") {
  attest_description description = fixtures::defective_kernel(fixtures::Defect::none).description;
  const std::uint32_t others =
      description.features &
      ~std::uint32_t{ATTEST_BOOLEAN_MASK | ATTEST_BLOCK_MASK | ATTEST_CSR_MASK | ATTEST_NM_MASK};
  for (const std::uint32_t form :
       {ATTEST_BOOLEAN_MASK, ATTEST_BLOCK_MASK, ATTEST_CSR_MASK, ATTEST_NM_MASK}) {
    description.features = others | form;
    const auto cases = cases_meeting(description, {"mask=boolean dtype=f32"}, 1);
    REQUIRE(cases.size() == 1);
    CHECK(mask_form(cases[0].problem.mask.sparsity(), description.features) == form);
  }
  description.features = others;
  CHECK(cases_meeting(description, {"mask=boolean dtype=f32"}, 1).empty());
}

TEST_CASE("a seed means the same pairwise cases with every compiler", "[pairwise]") {
  const attest_description& description =
      fixtures::defective_kernel(fixtures::Defect::none).description;
  std::uint64_t digest = 0;
  for (const proptest::Case& c : cases_meeting(description, claimed_pairs(description), 1)) {
    for (const char letter : c.problem.to_string()) {
      digest = mix(digest, static_cast<unsigned char>(letter));
    }
    digest = mix(digest, mix(static_cast<std::uint64_t>(c.values), c.seed));
  }
  CHECK(digest == 0x5f8f4b229fe54bd4u);
}

// As many cases as any set has that meets these pairs: one for each pair of the two factors that
// have the most.
std::size_t fewest(const Pairs& pairs) {
  std::map<std::string, std::size_t> of_factors;
  for (const std::string& pair : pairs) {
    const std::size_t space = pair.find(' ');
    const auto factor = [](const std::string& word) { return word.substr(0, word.find('=')); };
    ++of_factors[factor(pair) + " " + factor(pair.substr(space + 1))];
  }
  std::size_t most = 0;
  for (const auto& [factors, count] : of_factors) most = std::max(most, count);
  return most;
}

TEST_CASE("cases that meet pairs", "[pairwise]") {
  Registry registry;
  register_cpu(registry);
  registry.add(&fixtures::defective_kernel(fixtures::Defect::none));
  for (const attest_kernel* kernel : registry.kernels()) {
    const attest_description& description = kernel->description;
    const Pairs all = claimed_pairs(description);
    const std::vector<proptest::Case> cases = cases_meeting(description, all, 7);
    std::printf("%s: %zu pairs, %zu cases, of at least %zu\n", description.name, all.size(),
                cases.size(), fewest(all));
    INFO(description.name);
    CHECK(met_by(description, cases) == all);
    CHECK(cases.size() <= fewest(all) + fewest(all) / 8 + 2);
    const std::vector<proptest::Case> again = cases_meeting(description, all, 7);
    REQUIRE(again.size() == cases.size());
    for (std::size_t k = 0; k < cases.size(); ++k) {
      CHECK(again[k].problem.to_string() == cases[k].problem.to_string());
    }
    const std::string one = *all.begin();
    const std::vector<proptest::Case> single = cases_meeting(description, {one}, 1);
    REQUIRE(single.size() == 1);
    CHECK(met_by(description, single).count(one) == 1);
  }
  CHECK(cases_meeting(registry.kernels().front()->description, {}, 1).empty());
}

}  // namespace
}  // namespace attest::certify
