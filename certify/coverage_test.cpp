#include "certify/coverage.hpp"

#include "core/testing/catch.hpp"

namespace attest::certify {
namespace {

using Words = std::vector<std::string>;

Words of(const char* problem) { return exercised_by(Problem::parse(problem)); }

TEST_CASE("a plain problem exercises its dtype only", "[coverage]") {
  CHECK(of("sq=3,d=4") == Words{"f32"});
  CHECK(of("sq=3,d=4,dtype=bf16") == Words{"bf16"});
}

TEST_CASE("every feature of a problem is named", "[coverage]") {
  CHECK(of("sq=3,d=4,mask=causal_tl") == Words{"f32", "causal_top_left"});
  CHECK(of("sq=3,d=4,mask=causal_br") == Words{"f32", "causal_bottom_right"});
  CHECK(of("sq=3,d=4,mask=window_1_1") == Words{"f32", "window"});
  CHECK(of("b=2,sq=3,d=4,mask=lengths_3_2") == Words{"f32", "key_lengths"});
  CHECK(of("sq=3,d=4,hq=4,hkv=2,softcap=5") == Words{"f32", "gqa", "softcap"});
  CHECK(of("sq=3,d=4,dv=2,alibi=standard") == Words{"f32", "head_dim_v", "alibi"});
  CHECK(of("sq=3,d=4,scale=0") == Words{"f32", "any_scale"});
  CHECK(of("sq=2,sk=3,d=4") == Words{"f32", "cross_lengths"});
  // Bottom-right, the first of three queries sees no key of two.
  CHECK(of("sq=3,sk=2,d=4,mask=causal_br") ==
        Words{"f32", "causal_bottom_right", "cross_lengths", "empty_rows"});
}

}  // namespace
}  // namespace attest::certify
