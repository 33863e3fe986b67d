#include "certify/reproduce/claims/triton_words.hpp"

#include "core/testing/catch.hpp"
#include "core/testing/nightly.hpp"
#include "schedules/register.hpp"

namespace attest::certify {
namespace {

const std::vector<Outcome> kReproduced(3, Outcome::reproduced);

// The schedules of a backward pass have so many tiles that theirs is judged in ci/nightly alone.
bool has_time_for(Direction direction) {
  return direction == Direction::forward || attest::testing::is_nightly();
}

std::vector<Outcome> outcomes(const std::vector<TritonPass>& passes) {
  std::vector<Outcome> list;
  for (const Claim& claim : triton_words(dense_schedules(), passes).claims) {
    list.push_back(claim.outcome);
  }
  return list;
}

TEST_CASE("what was recorded of Triton's words reproduces the claims", "[triton_words]") {
  const std::vector<TritonPass> passes = parse_triton_words(recorded_triton_words());
  for (const Direction direction : {Direction::forward, Direction::backward}) {
    if (!has_time_for(direction)) continue;
    std::vector<TritonPass> of_it;
    for (const TritonPass& pass : passes) {
      if (pass.direction == direction) of_it.push_back(pass);
    }
    CAPTURE(name(direction));
    CHECK(of_it.size() >= 8);
    CHECK(outcomes(of_it) == kReproduced);
  }
}

TEST_CASE("other words, fewer words and no small fast memory are seen", "[triton_words]") {
  const auto good = GENERATE(TritonPass{Direction::forward, 256, 16, 512, {}, 17303552, 90624},
                             TritonPass{Direction::backward, 256, 16, 512, {}, 35786752, 119424});
  if (!has_time_for(good.direction)) return;
  TritonPass right = good;
  right.words = words_of_order(good);
  CHECK(outcomes({right}) == kReproduced);
  for (const char* tensor : {"Q", "K", "LSE"}) {
    TritonPass twice = right;
    twice.words[tensor].read = 2 * twice.words[tensor].read + 1;
    CHECK(outcomes({right, twice})[0] == Outcome::not_reproduced);
  }
  TritonPass few = right;
  few.moved_bytes = 1000;
  CHECK(outcomes({few})[1] == Outcome::not_reproduced);
  CHECK(outcomes({few})[2] == Outcome::not_reproduced);
  TritonPass large = right;
  large.fast_bytes *= 2;
  CHECK(outcomes({large})[1] == Outcome::not_compared);
  TritonPass spilled = right;
  spilled.spills = true;
  const Findings found = triton_words(dense_schedules(), {spilled});
  CHECK(found.plots.empty());
  CHECK(found.tables[0].rows.size() == 1);
  CHECK(found.claims[1].outcome == Outcome::not_compared);
}

TEST_CASE("each pass has claims, tables and plots of its own", "[triton_words]") {
  CHECK(outcomes({}).empty());
  TritonPass pass{Direction::forward, 64, 64, 128, {}, 200000, 100000};
  std::vector<TritonPass> passes{pass};
  pass.direction = Direction::backward;
  passes.push_back(pass);
  const Findings found = triton_words(dense_schedules(), passes);
  CHECK(found.claims.size() == 6);
  CHECK(found.tables[1].name == "triton_words_backward");
  CHECK(found.plots[1].name == "triton_words_backward_64");
}

}  // namespace
}  // namespace attest::certify
