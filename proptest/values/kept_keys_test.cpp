#include "proptest/values/kept_keys.hpp"

#include <map>
#include <string>

#include "core/testing/catch.hpp"
#include "fixtures/register.hpp"
#include "proptest/judge/claims.hpp"
#include "proptest/values/generator.hpp"

namespace attest::proptest {
namespace {

std::string kept(const std::string& text) {
  Problem p = Problem::parse(text);
  keep_a_key_in_each_row(p);
  CHECK(rows_without_a_key(p).empty());
  return p.to_string();
}

TEST_CASE("each row keeps a key", "[kept_keys]") {
  for (const char* sizes :
       {"hq=4,sq=9,sk=33,d=8", "b=2,hq=2,sq=17,sk=17,d=8,mask=causal_br", "sq=64,sk=64,d=8",
        "hq=2,d=8,mask=cu_3x9_5x7", "b=2,sq=5,sk=20,d=8,mask=lengths_20_9+window_3_1"}) {
    INFO(sizes);
    for (const char* axes : {"bhqk", "bk", "hq"}) {
      const std::string text = kept(std::string(sizes) + ",head_mask=" + axes + "_30_7");
      CHECK_THAT(text, Catch::Contains("head_mask="));
      CHECK_THAT(kept(std::string(sizes) + ",bias=" + axes + "_holes_2"),
                 Catch::Contains("_holes_"));
    }
  }
  // Two keys and many rows: no mask of heads but the whole one leaves each row a key.
  CHECK_THAT(kept("hq=64,sq=64,sk=2,d=8,mask=causal_tl,head_mask=bhqk_30_7"),
             !Catch::Contains("head_mask="));
  // A mask that shows each row a key stays.
  const std::string shown =
      "b=1,hq=1,hkv=1,sq=2,sk=9,d=8,dv=8,mask=none,dtype=f32,layout=bshd,"
      "scale=1/sqrt(d),head_mask=k_60_7";
  Problem p = Problem::parse(shown);
  keep_a_key_in_each_row(p);
  CHECK(p.to_string() == Problem::parse(shown).to_string());
}

// How often kernels that claim no empty rows are asked for what can hide keys from heads.
TEST_CASE("masks of heads, holes and offset windows are drawn for kernels without empty rows",
          "[kept_keys]") {
  attest_description d = fixtures::defective_kernel(fixtures::Defect::none).description;
  d.features &= ~std::uint32_t{ATTEST_EMPTY_ROWS};
  constexpr std::uint64_t kSeeds = 5;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    INFO(seed);
    std::map<std::string, int> met;
    for (std::uint64_t index = 0; index < tier_cases(Tier::smoke); ++index) {
      const Problem p = generate(d, Tier::smoke, seed, index).problem;
      CHECK(unclaimed(d, p, Direction::forward).empty());
      const HeadMask& mask = p.head_mask;
      if (mask.kind != HeadMask::Kind::none) {
        ++met["masks of heads"];
        met["masks that differ by head"] += mask.axes[1] && p.num_heads_q > 1 ? 1 : 0;
        met["masks under a causal one or a window"] += p.mask.banded() ? 1 : 0;
      }
      met["holes"] += p.bias.kind == Bias::Kind::holes ? 1 : 0;
      met["offset windows"] += p.mask.offset ? 1 : 0;
    }
    for (const char* what : {"masks of heads", "masks that differ by head",
                             "masks under a causal one or a window", "holes", "offset windows"}) {
      INFO(what << " " << met[what]);
      CHECK(met[what] > 0);
    }
  }
}

}  // namespace
}  // namespace attest::proptest
