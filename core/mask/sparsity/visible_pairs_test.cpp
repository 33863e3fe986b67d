#include "core/mask/sparsity/visible_pairs.hpp"

#include "core/problem.hpp"
#include "core/testing/catch.hpp"

namespace attest {
namespace {

TEST_CASE("what the mask leaves", "[sparsity]") {
  for (const char* text : {"sq=9,sk=13",
                           "sq=9,sk=13,mask=causal_br",
                           "sq=13,sk=9,mask=causal_br",
                           "sq=13,sk=9,mask=causal_tl",
                           "sq=9,sk=13,mask=window_2_1",
                           "sq=9,sk=13,mask=window_tl_0_3",
                           "b=3,sq=7,sk=8,mask=lengths_0_5_8",
                           "b=2,sq=7,sk=8,mask=lengths_3_8+causal_br",
                           "mask=cu_3x5_0x7_4x0_6x2",
                           "mask=cu_3x5_4x4+causal_tl",
                           "sq=9,sk=13,mask=random_40_3",
                           "sq=9,sk=13,mask=random_100_3",
                           "sq=9,sk=13,mask=random_0_3",
                           "sq=9,sk=13,mask=random_40_3+causal_br",
                           "sq=9,sk=13,mask=block_2x3_40_1",
                           "sq=9,sk=13,mask=block_2x3_60_1+window_3_2",
                           "sq=9,sk=12,mask=nm_2_4_1",
                           "b=2,sq=9,sk=13,mask=lengths_4_13+pairs_30_1",
                           "sq=9,sk=13,mask=global_2_1_1",
                           "sq=0,sk=3,mask=causal_br",
                           "sq=3,sk=0,mask=causal_br"}) {
    const Problem problem = Problem::parse(std::string("d=1,") + text);
    for (const Sequence& sequence : problem.sequences()) {
      INFO(text);
      const SparsityPattern pattern = visible_pairs(problem.mask, sequence);
      REQUIRE(pattern.rows() == sequence.q_length);
      REQUIRE(pattern.columns() == sequence.k_length);
      std::int64_t pairs = 0;
      for (std::int64_t i = 0; i < pattern.rows(); ++i) {
        for (std::int64_t j = 0; j < pattern.columns(); ++j) {
          const bool visible = problem.mask.visible(sequence, i, j);
          CHECK(pattern.contains(i, j) == visible);
          pairs += visible ? 1 : 0;
        }
      }
      CHECK(pattern.nnz() == pairs);
    }
  }
}

TEST_CASE("a mask's own form is kept where it is the whole mask", "[sparsity]") {
  const auto form_of = [](const char* mask) {
    const Problem problem = Problem::parse(std::string("sq=64,d=1,mask=") + mask);
    return visible_pairs(problem.mask, problem.sequences().front()).form().index();
  };
  CHECK(form_of("block_16_50_1") == SparsityPattern::Form(BlockForm{}).index());
  CHECK(form_of("nm_2_4_1") == SparsityPattern::Form(NmForm{}).index());
  CHECK(form_of("pairs_5_1") == SparsityPattern::Form(CsrForm{}).index());
  CHECK(form_of("block_16_50_1+causal_br") == SparsityPattern::Form(RangeForm{}).index());
}

// A million queries: as ranges they are a few words each, as pairs they would not fit into memory.
TEST_CASE("a long band takes memory of its ranges alone", "[sparsity]") {
  const Problem problem = Problem::parse("sq=1000000,d=1,mask=causal_br");
  const SparsityPattern pattern = visible_pairs(problem.mask, problem.sequences().front());
  CHECK(pattern.nnz() == std::int64_t{1000000} * 1000001 / 2);
}

}  // namespace
}  // namespace attest
