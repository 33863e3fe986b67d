#include "certify/reproduce/claims/triton_words.hpp"

#include "core/testing/catch.hpp"
#include "schedules/register.hpp"

namespace attest::certify {
namespace {

const std::vector<Outcome> kReproduced(3, Outcome::reproduced);

std::vector<Outcome> outcomes(const std::vector<TritonPass>& passes) {
  std::vector<Outcome> list;
  for (const Claim& claim : triton_words(dense_schedules(), passes).claims) {
    list.push_back(claim.outcome);
  }
  return list;
}

void check_record(Direction direction) {
  std::vector<TritonPass> of_it;
  for (const TritonPass& pass : parse_triton_words(recorded_triton_words())) {
    if (pass.direction == direction) of_it.push_back(pass);
  }
  CHECK(of_it.size() >= 8);
  CHECK(outcomes(of_it) == kReproduced);
}

// Other words, fewer words and no small fast memory are seen.
void check_mistakes(const TritonPass& good) {
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

TEST_CASE("what was recorded of Triton's words reproduces the claims", "[triton_words]") {
  check_record(Direction::forward);
}

TEST_CASE("wrong words of Triton are seen", "[triton_words]") {
  check_mistakes({Direction::forward, 256, 16, 512, {}, 17303552, 90624});
}

// The schedules of a backward pass have many tiles.
TEST_CASE("backward words of Triton reproduce the claims, and wrong ones are seen",
          "[triton_words][nightly]") {
  check_record(Direction::backward);
  check_mistakes({Direction::backward, 256, 16, 512, {}, 35786752, 119424});
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
