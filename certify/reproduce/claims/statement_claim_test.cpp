#include "certify/reproduce/claims/statement_claim.hpp"

#include "core/testing/catch.hpp"

namespace attest::certify {
namespace {

// Returns a statement about two fast memories, 4 and 64 times as large as d^2 words of 16 bits.
Statement about_two_sizes() {
  constexpr std::int64_t kHeadDim = 64, kWordBytes = 2, kSquare = kHeadDim * kHeadDim * kWordBytes;
  Statement statement;
  statement.source = "a test";
  statement.text = "M is that large";
  statement.places = {{"", "small", 4 * kSquare}, {"", "large", 64 * kSquare}};
  statement.head_dims = {{kHeadDim, kHeadDim}};
  return statement;
}

Outcome outcome(double at_least, double below, Statement::Of of = Statement::Of::every) {
  Statement statement = about_two_sizes();
  statement.at_least = at_least;
  statement.below = below;
  statement.of = of;
  return claim_of(statement).outcome;
}

TEST_CASE("a wrong statement is not reproduced, one of some places with a correction",
          "[reproduce]") {
  constexpr double kHuge = 1e9;
  CHECK(outcome(0, kHuge) == Outcome::reproduced);
  CHECK(outcome(kHuge, 2 * kHuge) == Outcome::not_reproduced);
  CHECK(outcome(0, 1) == Outcome::not_reproduced);
  CHECK(outcome(16, kHuge) == Outcome::corrected);  // of the large one
  // A width of the words of every place is enough for `some`.
  CHECK(outcome(4, 5, Statement::Of::some) == Outcome::corrected);
}

}  // namespace
}  // namespace attest::certify
