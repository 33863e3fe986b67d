#include "certify/plan/sizes.hpp"

#include <nlohmann/json.hpp>

#include "core/testing/catch.hpp"

namespace attest::certify {
namespace {

std::string kind(const char* problem) { return mask_kind(Problem::parse(problem).mask); }

TEST_CASE("masks have kinds", "[sizes]") {
  CHECK(kind("sq=2,d=1") == "none");
  CHECK(kind("sq=2,d=1,mask=causal_tl") == "causal");
  CHECK(kind("sq=2,d=1,mask=causal_br") == "causal");
  CHECK(kind("sq=2,d=1,mask=window_3_0") == "window");
  CHECK(kind("sq=2,d=1,mask=window_0_inf") == "window");
  CHECK(kind("sq=2,d=1,mask=lengths_1") == "lengths");
  CHECK(kind("sq=2,d=1,mask=random_50_1") == "pairs");
  CHECK(kind("sq=2,d=1,mask=block_1_50_1+causal_br") == "causal+pairs");
  CHECK(kind("d=1,mask=cu_2x2_1x3+causal_br") == "packed+causal");
}

TEST_CASE("sizes covered are the largest, sampled ones said to be", "[sizes]") {
  CoveredSizes sizes;
  for (const char* text : {"b=3,hq=2,sq=17,sk=90,d=8,dv=4", "sq=40,sk=33,d=2,dv=64"}) {
    sizes.include(Problem::parse(text));
  }
  CHECK(sizes_text(sizes_json(sizes)) ==
        "seqlen_q <= 40, seqlen_k <= 90, head_dim <= 64, batch <= 3, heads <= 2");
  sizes.include(Problem::parse("sq=2100,sk=2100,d=8"));
  CHECK(sizes_text(sizes_json(sizes)) ==
        "seqlen_q <= 2100 (by sample; whole <= 40), seqlen_k <= 2100 (by sample; whole <= 90), "
        "head_dim <= 64, batch <= 3, heads <= 2");
  CoveredSizes packed;
  packed.include(Problem::parse("d=1,mask=cu_3x5_4x2"));
  CHECK(sizes_text(sizes_json(packed)) ==
        "seqlen_q <= 4, seqlen_k <= 5, head_dim <= 1, batch <= 2, heads <= 1, tokens <= 7");
  CHECK(sizes_json(packed).at("sampled").is_null());
}

TEST_CASE("sizes stand under the mask and the size of the heads", "[sizes]") {
  SizesByKind sizes;
  for (const char* text :
       {"sq=700,d=64", "sq=9,d=33,mask=causal_br", "sq=3,d=8,dv=32", "sq=1,d=576"}) {
    include(Problem::parse(text), sizes);
  }
  std::map<std::string, std::int64_t> queries;
  for (const auto& [kind, covered] : sizes) queries[kind] = covered.whole.seqlen_q;
  CHECK(queries ==
        std::map<std::string, std::int64_t>{
            {"causal", 9}, {"d <= 32", 3}, {"d <= 64", 700}, {"d > 256", 1}, {"none", 700}});
  include(Problem::parse("sq=2100,sk=2100,d=8"), sizes);
  CHECK(sizes_text(sizes_json(of_all_kinds(sizes))) ==
        "seqlen_q <= 2100 (by sample; whole <= 700), seqlen_k <= 2100 (by sample; whole <= 700), "
        "head_dim <= 576, batch <= 1, heads <= 1");
}

}  // namespace
}  // namespace attest::certify
