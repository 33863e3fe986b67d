#include "io/bounds/extent.hpp"

#include <vector>

#include "core/error.hpp"
#include "core/testing/catch.hpp"

namespace attest::io {
namespace {

// Every pair of every head asked for, one by one.
Extent counted(const Problem& problem) {
  Extent extent;
  extent.head_dim_qk = problem.head_dim_qk;
  extent.head_dim_v = problem.head_dim_v;
  for (const Sequence& sequence : problem.sequences()) {
    for (std::int64_t head = 0; head < problem.num_heads_kv; ++head) {
      std::vector<int> any(static_cast<std::size_t>(sequence.k_length)), many = any;
      extent.keys += sequence.visible_keys;
      for (std::int64_t row = 0; row < sequence.q_length * problem.group_size(); ++row) {
        const std::int64_t i = row % sequence.q_length;
        ++extent.rows;
        std::int64_t keys = 0;
        for (std::int64_t j = 0; j < sequence.k_length; ++j) {
          if (j < sequence.visible_keys) ++extent.all_pairs;
          if (problem.mask.visible(sequence, i, j)) ++keys;
        }
        if (keys == 1) ++extent.rows_one;
        if (keys >= 2) ++extent.rows_many, extent.pairs += keys;
        for (std::int64_t j = 0; j < sequence.k_length; ++j) {
          if (!problem.mask.visible(sequence, i, j)) continue;
          any[static_cast<std::size_t>(j)] = 1;
          if (keys >= 2) many[static_cast<std::size_t>(j)] = 1;
        }
      }
      for (const int seen : any) extent.columns_seen += seen;
      for (const int seen : many) extent.columns_many += seen;
    }
  }
  return extent;
}

TEST_CASE("extents agree with brute force", "[io][bounds]") {
  for (const char* text :
       {"sq=3,sk=5,d=2,dv=3", "b=2,hq=6,hkv=2,sq=4,sk=7,d=3,mask=causal_tl",
        "b=1,hq=2,sq=7,sk=4,d=3,mask=causal_br", "sq=9,sk=9,d=1,mask=window_0_0",
        "sq=9,sk=5,d=1,mask=window_tl_1_0", "b=3,sq=2,sk=6,d=2,mask=lengths_1_0_6",
        "b=2,hq=2,sq=5,sk=6,d=2,mask=lengths_1_4+causal_br", "hq=4,hkv=1,d=2,mask=cu_3x5_0x7_4x1",
        "hq=2,d=2,mask=cu_3x5_4x2+causal_tl", "sq=8,sk=9,d=2,mask=random_20_3",
        "hq=4,hkv=2,sq=8,sk=9,d=2,mask=random_10_5+causal_tl", "sq=4,sk=1,d=3,dv=2"}) {
    INFO(text);
    const Problem problem = Problem::parse(text);
    const Extent extent = extent_of(problem);
    CHECK(extent == counted(problem));
    CHECK(extent.pairs + extent.rows_one == problem.visible_pairs() * problem.num_heads_q);
  }
}

TEST_CASE("an extent refuses overflow and empty sizes", "[io][bounds]") {
  CHECK_THROWS_AS(dense_extent(0, 1, 1, 1), InvalidProblem);
  CHECK_THROWS_AS(dense_extent(1, 1, 1, -1), InvalidProblem);
  Problem large = Problem::parse("sq=2,sk=2,d=1");
  large.seqlen_q = large.seqlen_k = std::int64_t{1} << 32;
  CHECK_THROWS_AS(extent_of(large), InvalidProblem);
}

}  // namespace
}  // namespace attest::io
