#include "certify/reproduce/claims/triton_pass.hpp"

#include <fmt/format.h>

#include "certify/reproduce/counted.hpp"
#include "core/error.hpp"
#include "core/testing/catch.hpp"
#include "schedules/register.hpp"

namespace attest::certify {
namespace {

std::int64_t sum(const std::map<std::string, WordsOfTensor>& words) {
  std::int64_t total = 0;
  for (const auto& [tensor, of_tensor] : words) total += of_tensor.read + of_tensor.written;
  return total;
}

TEST_CASE("the closed form of a pass is that of the schedule with its loops", "[triton_words]") {
  constexpr std::int64_t kAmple = 1 << 20;
  for (const std::int64_t seqlen : {96, 100}) {
    for (const std::int64_t tile : {16, 32}) {
      const Problem problem = square_problem(seqlen, 24);
      TritonPass pass{Direction::forward, 24, tile, seqlen};
      const auto forward = count_words(dense_schedules(), fmt::format("flash2:bq={0},bk={0}", tile),
                                       problem, kAmple);
      CHECK(sum(words_of_order(pass)) == forward->words);
      pass.direction = Direction::backward;
      const auto backward =
          count_words(dense_schedules(), fmt::format("two_pass:bq={0},bk={0},cq={0},ck={0}", tile),
                      problem, kAmple);
      CHECK(sum(words_of_order(pass)) == backward->words);
    }
  }
}

TEST_CASE("launches of a pass are added by tensor", "[triton_words]") {
  const std::vector<TritonPass> passes = parse_triton_words(
      R"({"direction": "backward", "head_dim": 16, "tile": 32, "seqlen": 64, )"
      R"("moved_bytes": 20, "fast_bytes": 30, "launches": [)"
      R"({"read": {"Q": 1, "dQ": 0}, "written": {"Q": 0, "dQ": 5}, "local_bytes": 0}, )"
      R"({"read": {"Q": 2, "dK": 0}, "written": {"Q": 0, "dK": 6}, "local_bytes": 8}]})");
  REQUIRE(passes.size() == 1);
  CHECK(passes[0].direction == Direction::backward);
  CHECK(passes[0].words ==
        std::map<std::string, WordsOfTensor>{{"Q", {3, 0}}, {"dQ", {0, 5}}, {"dK", {0, 6}}});
  CHECK(passes[0].spills);
}

TEST_CASE("lines that are no records are refused with their number", "[triton_words]") {
  CHECK(parse_triton_words("\n").empty());
  CHECK_THROWS_WITH(parse_triton_words("\n{\"direction\": \"forward\"}"),
                    Catch::Contains("line 2") && Catch::Contains("head_dim"));
  CHECK_THROWS_WITH(parse_triton_words("{\"direction\": \"sideways\"}"),
                    Catch::Contains("line 1") && Catch::Contains("sideways"));
  CHECK_THROWS_AS(parse_triton_words("[1"), InvalidProblem);
}

}  // namespace
}  // namespace attest::certify
