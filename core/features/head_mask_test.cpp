#include "core/features/head_mask.hpp"

#include <string>
#include <utility>

#include "core/error.hpp"
#include "core/features/head_mask_array.hpp"
#include "core/problem.hpp"
#include "core/testing/catch.hpp"

namespace attest {
namespace {

TEST_CASE("masks of heads are spelled", "[head_mask]") {
  for (const char* text : {"bhqk_60_7", "1_0_0", "hk_100_18446744073709551615"}) {
    CHECK(HeadMask::parse(text).to_string() == text);
    const std::string problem = std::string("hq=2,sq=3,d=4,head_mask=") + text;
    CHECK_THAT(Problem::parse(problem).to_string(),
               Catch::Contains(std::string("head_mask=") + text));
  }
  CHECK(HeadMask::parse("none") == HeadMask{});
}

TEST_CASE("texts that are no mask of heads are refused with what is needed", "[head_mask]") {
  for (const auto& [text, why] :
       {std::pair("", "names no axes"), std::pair("60_7", "begins with '60'"),
        std::pair("qh_60_7", "begins with 'qh'"), std::pair("hqk", "has '' where the percent"),
        std::pair("hqk_101_7", "has '101' where the percent"),
        std::pair("hqk_-1_7", "has '-1' where the percent"), std::pair("hqk_60", "needs a seed"),
        std::pair("hqk_60_x", "needs a seed")}) {
    INFO(text);
    CHECK_THROWS_WITH(HeadMask::parse(text), Catch::Contains(why));
    CHECK_THROWS_WITH(HeadMask::parse(text), Catch::Contains("head_mask=bhqk_60_7"));
  }
  CHECK_THROWS_WITH(Problem::parse("b=64,hq=64,sq=64,sk=65,d=1,head_mask=k_50_1"),
                    Catch::Contains("more than 2^24 pairs"));
}

// Counts the pairs of indices at which an entry differs along an axis.
int differing(const HeadMask& mask, std::size_t axis) {
  int count = 0;
  for (std::int64_t n = 0; n < 81; ++n) {
    std::array<std::int64_t, 4> at{n / 27 % 3, n / 9 % 3, n / 3 % 3, n % 3}, other = at;
    ++other[axis];
    count += mask(at[0], at[1], at[2], at[3]) != mask(other[0], other[1], other[2], other[3]);
  }
  return count;
}

TEST_CASE("a mask of heads differs along its axes and nowhere along others", "[head_mask]") {
  for (const char* text : {"bhqk_50_1", "bq_50_2", "hk_50_3", "1_50_4"}) {
    INFO(text);
    const HeadMask mask = HeadMask::parse(text);
    for (std::size_t axis = 0; axis < 4; ++axis) {
      CHECK((differing(mask, axis) > 0) == mask.axes[axis]);
      CHECK(differing(mask.first_of(axis), axis) == 0);
    }
  }
}

// Pairs at which the memory of a call says another thing than the mask, read with its strides or,
// the deliberate mistake, with those of heads and batch entries exchanged.
int wrong_pairs(const Problem& p, bool exchanged) {
  const AbiProblem abi(p, 1, ATTEST_HEAD_MASK);
  const attest_head_mask& mask = *abi.get()->mask.per_head;
  const std::int64_t span = head_mask_span(*abi.get());
  int wrong = 0;
  for (std::int64_t b = 0; b < p.batch; ++b) {
    for (std::int64_t h = 0; h < p.num_heads_q; ++h) {
      for (std::int64_t i = 0; i < p.seqlen_q; ++i) {
        for (std::int64_t j = 0; j < p.seqlen_k; ++j) {
          const std::int64_t place = b * mask.strides[exchanged ? 1 : 0] +
                                     h * mask.strides[exchanged ? 0 : 1] + i * mask.strides[2] +
                                     j * mask.strides[3];
          if (!exchanged) REQUIRE(place < span);
          wrong += (mask.visible[place % span] != 0) != p.head_mask(b, h, i, j);
        }
      }
    }
  }
  return wrong;
}

TEST_CASE("a call has the mask of heads with its strides", "[head_mask]") {
  for (const char* mask : {"bhqk_50_2", "bhqk_50_3", "bhqk_50_4", "hk_50_7", "bq_50_6", "1_0_1"}) {
    INFO(mask);
    const Problem p = Problem::parse(std::string("b=2,hq=3,sq=4,sk=5,d=4,head_mask=") + mask);
    CHECK(wrong_pairs(p, false) == 0);
    if (p.head_mask.axes[0]) CHECK(wrong_pairs(p, true) > 0);
  }
}

}  // namespace
}  // namespace attest
