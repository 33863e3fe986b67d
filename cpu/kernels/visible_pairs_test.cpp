// Masks of heads, query lengths and windows with both ends anywhere in cpu/flash2.
#include <string>
#include <utility>

#include "core/testing/catch.hpp"
#include "cpu/kernels/kernel.hpp"
#include "cpu/testing/judged_call.hpp"

namespace attest::cpu {
namespace {

using attest::testing::Call;

// Beyond tiles of 128 queries and 64 keys, and each with others.
const char* const kProblems[] = {
    "b=2,hq=4,hkv=2,sq=130,sk=70,d=8,dv=24,mask=causal_br,head_mask=bhqk_60_7",
    "b=2,hq=3,sq=9,sk=70,d=8,head_mask=hk_30_2",
    "b=3,hq=2,sq=3,sk=9,d=4,mask=lengths_9_0_5,head_mask=bq_50_3",
    "hq=3,d=8,mask=cu_5x9_0x4_70x133+causal_br,head_mask=bhk_70_4",
    "b=2,hq=2,sq=9,sk=9,d=8,mask=random_60_3,softcap=2,head_mask=hqk_80_5",
    "b=4,hq=4,hkv=2,sq=260,sk=70,d=8,mask=causal_br,query_lengths=drawn_3",
    "b=4,hq=2,sq=9,sk=12,d=8,mask=causal_tl+lengths_12_4_0_9,query_lengths=drawn_5",
    "hq=2,d=8,mask=cu_5x9_140x4_70x133+causal_br,alibi=standard,query_lengths=drawn_2",
    "b=2,sq=200,sk=150,d=4,mask=window_-1_70",
    "b=2,sq=150,sk=200,d=4,mask=window_tl_inf_-1",
    "sq=150,sk=200,d=4,mask=window_-3_inf+random_80_2",
    "sq=9,sk=200,d=4,mask=window_150_-20,alibi=standard",
    "sq=9,sk=9,d=4,mask=window_7_-8",
    "sq=9,sk=9,d=4,mask=window_-4611686018427387904_inf",
    "d=4,mask=cu_5x9_0x4_70x133+window_-2_9"};

TEST_CASE("pairs are visible as the definition has them", "[cpu][visible_pairs]") {
  for (const char* text : kProblems) {
    for (const char* dtype : {"f32", "bf16"}) {
      INFO(text << " " << dtype);
      Call call(Problem::parse(std::string(text) + ",dtype=" + dtype), 1, {.threads = 2});
      testing::run_both(call, flash2_kernel());
      CHECK(testing::judge(call).worst() <= 1);
    }
  }
}

// The deliberate mistake: the kernel is given other masks than the definition.
TEST_CASE("other visible pairs do not pass for these", "[cpu][visible_pairs]") {
  for (const auto& [text, other] :
       {std::pair("b=2,hq=2,sq=5,sk=9,d=4,head_mask=bhqk_60_7",
                  "b=2,hq=2,sq=5,sk=9,d=4,head_mask=bhqk_60_8"),
        std::pair("b=3,sq=5,sk=9,d=4,query_lengths=drawn_3",
                  "b=3,sq=5,sk=9,d=4,query_lengths=drawn_8"),
        std::pair("sq=5,sk=9,d=4,mask=window_5_-1", "sq=5,sk=9,d=4,mask=window_5_-2")}) {
    INFO(text);
    const attest_kernel& kernel = flash2_kernel();
    Call call(Problem::parse(text), 1, {});
    const AbiProblem given(Problem::parse(other), 1, kernel.description.features);
    attest_forward_args forward = call.forward_arguments(kernel);
    forward.problem = given.get();
    REQUIRE(kernel.forward(kernel.self, &forward) == ATTEST_OK);
    attest_backward_args backward = call.backward_arguments(kernel);
    backward.problem = given.get();
    REQUIRE(kernel.backward(kernel.self, &backward) == ATTEST_OK);
    CHECK(testing::judge(call).worst() > 1);
  }
}

}  // namespace
}  // namespace attest::cpu
