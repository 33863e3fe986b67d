#include "io/pebble/minimum.hpp"

#include "core/error.hpp"
#include "core/testing/catch.hpp"
#include "io/pebble/any_order.hpp"

namespace attest::io {
namespace {

constexpr std::int64_t kPositions = 10'000'000;

std::int32_t exact(const StepSystem& system, std::int32_t fast_words) {
  const Minimum minimum = least_traffic(system, fast_words, kPositions);
  REQUIRE(minimum.certainty == Minimum::Certainty::exact);
  return minimum.words;
}

TEST_CASE("least traffic of chains by rules R1 to R4", "[io][pebble]") {
  const StepSystem square = steps_of(forward_dag({2, 2, 1, 1, {}}, {}));
  CHECK(least_traffic(square, 3, kPositions).certainty == Minimum::Certainty::impossible);
  const std::int32_t words[] = {16, 11, 10, 9, 8};
  for (std::int32_t index = 0; index < 5; ++index) CHECK(exact(square, 4 + index) == words[index]);
  const StepSystem row = steps_of(forward_dag({1, 2, 2, 2, {}}, {}));
  CHECK(exact(row, 4) == 18);
  CHECK(exact(row, 5) == 12);
  CHECK(exact(row, 6) == 12);
}

TEST_CASE("least traffic in any order", "[io][pebble]") {
  struct Figure {
    AttentionShape shape;
    std::int32_t fast_words, words;
  };
  for (const Figure& figure : {Figure{{2, 2, 1, 1, {}}, 3, 11}, Figure{{2, 2, 1, 1, {}}, 4, 10},
                               Figure{{2, 2, 1, 1, {}}, 5, 8}, Figure{{2, 2, 1, 1, {}}, 6, 8},
                               Figure{{3, 2, 1, 1, {}}, 3, 16}, Figure{{3, 2, 1, 1, {}}, 4, 14},
                               Figure{{3, 2, 1, 1, {}}, 5, 12}, Figure{{3, 2, 1, 1, {}}, 6, 10},
                               Figure{{2, 3, 1, 1, {}}, 3, 17}, Figure{{2, 3, 1, 1, {}}, 4, 14},
                               Figure{{2, 3, 1, 1, {}}, 5, 12}, Figure{{2, 3, 1, 1, {}}, 6, 11},
                               Figure{{2, 3, 1, 1, {}}, 7, 10}, Figure{{4, 2, 1, 1, {}}, 5, 15},
                               Figure{{4, 2, 1, 1, {}}, 6, 12}, Figure{{3, 3, 1, 1, {}}, 6, 15},
                               Figure{{3, 3, 1, 1, {}}, 7, 14}}) {
    const StepSystem system = any_order_forward(figure.shape, OneKeyRow::copied);
    INFO(figure.shape.seqlen_q << 'x' << figure.shape.seqlen_k << ", M = " << figure.fast_words);
    CHECK(exact(system, figure.fast_words) == figure.words);
  }
}

// Minutes and a gigabyte: run by name.
TEST_CASE("least traffic in any order, the large cases", "[.][large]") {
  constexpr std::int64_t kMany = 100'000'000;
  const AttentionShape tall{4, 2, 1, 1, {}}, square{3, 3, 1, 1, {}};
  CHECK(least_traffic(any_order_forward(tall, OneKeyRow::copied), 4, kMany).words == 18);
  CHECK(least_traffic(any_order_forward(tall, OneKeyRow::copied), 3, kMany).words == 21);
  CHECK(least_traffic(any_order_forward(square, OneKeyRow::copied), 5, kMany).words == 17);
}

TEST_CASE("least traffic with one-key rows", "[io][pebble]") {
  CHECK(exact(any_order_forward({8, 1, 2, 1, {}}, OneKeyRow::copied), 8) == 9);
  const AttentionShape causal{3, 3, 1, 1, {1, 0, 0, 1, 1, 0, 1, 1, 1}};
  CHECK(exact(any_order_forward(causal, OneKeyRow::copied), 6) == 11);
  CHECK(exact(any_order_forward(causal, OneKeyRow::computed), 6) == 12);
}

TEST_CASE("a search that is cut short says so", "[io][pebble]") {
  const StepSystem system = steps_of(forward_dag({2, 2, 1, 1, {}}, {}));
  const Minimum minimum = least_traffic(system, 4, 1000);
  CHECK(minimum.certainty == Minimum::Certainty::at_least);
  CHECK(minimum.words <= 16);
  CHECK(minimum.words >= 8);
  CHECK_THROWS_AS(least_traffic(system, 0, 1000), InvalidProblem);
  CHECK_THROWS_AS(steps_of(forward_dag({4, 4, 2, 2, {}}, {})), InvalidProblem);
  CHECK_THROWS_AS(any_order_forward({4, 4, 2, 2, {}}, OneKeyRow::copied), InvalidProblem);
}

TEST_CASE("the search needs no estimate to be exact", "[io][pebble]") {
  StepSystem chains = steps_of(forward_dag({1, 2, 1, 1, {}}, {}));
  StepSystem any = any_order_forward({2, 2, 1, 1, {}}, OneKeyRow::copied);
  for (const std::int32_t fast_words : {4, 5, 6}) {
    const std::int32_t chained = exact(chains, fast_words), free = exact(any, fast_words);
    const auto estimates = std::pair(chains.remaining, any.remaining);
    chains.remaining = any.remaining = [](WordSet, WordSet) { return 0; };
    CHECK(exact(chains, fast_words) == chained);
    CHECK(exact(any, fast_words) == free);
    chains.remaining = estimates.first;
    any.remaining = estimates.second;
  }
}

}  // namespace
}  // namespace attest::io
