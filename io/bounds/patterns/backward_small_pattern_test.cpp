#include "io/bounds/patterns/backward_small_pattern.hpp"

#include "core/error.hpp"
#include "core/testing/catch.hpp"
#include "io/bounds/dense/backward.hpp"
#include "io/bounds/testing/random_patterns.hpp"

namespace attest::io {
namespace {

using testing::random_table;
using testing::sum;
using testing::Table;

Bound bound_of(const std::string& text, const KernelClass& kernel, std::int64_t fast_words) {
  return backward_small_pattern(five_product_parts(pattern_degrees(Problem::parse(text))), kernel,
                                fast_words);
}

struct Done {
  double words = 0, work = 0;
};

// Every product of usable words, of random ones, weighted.
Done random_segment(Rng& rng, const Table& sees, std::int64_t d) {
  const std::int64_t chances[] = {0, 50, 100};
  const auto some = [&](std::size_t rows) {
    return random_table(rng, rows, d, chances[rng.between(0, 2)]);
  };
  const std::size_t keys = sees.front().size();
  const Table q = some(sees.size()), target = some(sees.size()), dq = some(sees.size());
  const Table k = some(keys), v = some(keys), dk = some(keys), dv = some(keys);
  Done done;
  for (const Table* operand : {&q, &target, &dq, &k, &v, &dk, &dv}) done.words += sum(*operand);
  const std::int64_t scores = chances[rng.between(0, 2)], gradients = chances[rng.between(0, 2)];
  const auto word = [&](std::int64_t percent) {
    const bool usable = rng.between(0, 99) < percent;
    done.words += usable ? 1 : 0;
    return usable;
  };
  const BackwardWeights weights = best_backward_weights({1, 2, 0});
  for (std::size_t i = 0; i < sees.size(); ++i) {
    for (std::size_t j = 0; j < keys; ++j) {
      if (sees[i][j] == 0) continue;
      const bool score = word(scores), gradient = word(gradients);
      for (std::size_t c = 0; c < static_cast<std::size_t>(d); ++c) {
        if (score) {
          done.work += weights.scores * q[i][c] * k[j][c];
          done.work += target[i][c] * dv[j][c];
        }
        if (gradient) {
          done.work += weights.score_gradients * (k[j][c] * dq[i][c] + q[i][c] * dk[j][c]);
          done.work += target[i][c] * v[j][c];
        }
      }
    }
  }
  return done;
}

// The greatest share of what the price allows that a random segment does.
double greatest_share(Rng& rng, const Table& sees, const PatternComponent& component) {
  const FiveProductPrice price(component);
  double share = 0;
  for (int round = 0; round < 600; ++round) {
    const Done done = random_segment(rng, sees, rng.between(1, 4));
    if (done.words == 0) continue;
    share = std::max(share, done.work / (done.words * price.work_per_word(done.words)));
  }
  return share;
}

Neighbourhoods neighbourhoods_of(const Table& sees) {
  PairLists pairs;
  pairs.keys = static_cast<std::int64_t>(sees.front().size());
  for (const auto& row : sees) {
    auto& keys = pairs.rows.emplace_back();
    for (std::size_t j = 0; j < row.size(); ++j) {
      if (row[j] == 1) keys.push_back(static_cast<std::int32_t>(j));
    }
  }
  return *Neighbourhoods::of(pairs);
}

TEST_CASE("no random segments do more of the five products than their words allow",
          "[io][bounds]") {
  Rng rng(23);
  Table pairs_alone(12, std::vector<int>(12));
  for (std::size_t i = 0; i < pairs_alone.size(); ++i) pairs_alone[i][i] = 1;
  double greatest = 0, greatest_of_wrong = 0;
  for (int round = 0; round < 60; ++round) {
    const Table sees = testing::random_pattern(rng);
    PatternComponent component = testing::component_of(sees);
    component.neighbourhoods = neighbourhoods_of(sees);
    const double share = greatest_share(rng, sees, component);
    CHECK(share <= 1);
    greatest = std::max(greatest, share);
    component.neighbourhoods = neighbourhoods_of(pairs_alone);
    greatest_of_wrong = std::max(greatest_of_wrong, greatest_share(rng, sees, component));
  }
  CHECK(greatest > 0.7);
  CHECK(greatest_of_wrong > 1);
}

TEST_CASE("the five products by pattern without a mask have the bound without", "[io][bounds]") {
  for (const char* text : {"sq=4096,d=64", "sq=1000,sk=3000,d=16,dv=40", "hq=8,sq=512,d=32"}) {
    const Extent extent = extent_of(Problem::parse(text));
    const std::int64_t square = extent.head_dim_qk * extent.head_dim_qk;
    for (const std::int64_t fast_words : {square / 4, square}) {
      INFO(text << " M " << fast_words);
      const std::int64_t by_pattern = bound_of(text, {}, fast_words).words;
      const std::int64_t by_size = backward_small(extent, {}, fast_words).words;
      // Grids round outward.
      CHECK(by_pattern > by_size - by_size / 8);
      CHECK(by_pattern < by_size);
    }
  }
}

TEST_CASE("scattered pairs cost the five products more than their number tells", "[io][bounds]") {
  for (const char* text : {"sq=1024,d=64,mask=random_5_1", "sq=1024,d=64,mask=pairs_2_1"}) {
    const Extent extent = extent_of(Problem::parse(text));
    for (const std::int64_t fast_words : {1024, 4096}) {
      INFO(text << " M " << fast_words);
      CHECK(bound_of(text, {}, fast_words).words >
            backward_small(extent, {}, fast_words).words * 5 / 4);
    }
  }
}

TEST_CASE("backward_small by pattern is monotone in fast_words", "[io][bounds]") {
  KernelClass once;
  once.evaluation = Evaluation::once;
  for (const char* text :
       {"sq=64,sk=64,d=8,mask=causal_br", "sq=60,sk=60,d=5,dv=9,mask=random_7_2",
        "hq=4,hkv=2,sq=40,sk=40,d=6,mask=window_3_4", "d=4,mask=cu_9x9_20x7_3x40"}) {
    for (const KernelClass& kernel : {KernelClass{}, once}) {
      const FiveProductParts parts = five_product_parts(pattern_degrees(Problem::parse(text)));
      std::int64_t before = backward_small_pattern(parts, kernel, 1).words;
      CHECK(before > 0);
      for (std::int64_t fast_words = 2; fast_words <= 3000; fast_words += 1 + fast_words / 8) {
        INFO(text << " fast_words " << fast_words);
        const std::int64_t now = backward_small_pattern(parts, kernel, fast_words).words;
        CHECK(now <= before);
        before = now;
      }
    }
  }
}

TEST_CASE("of many components the smallest share a price of the five products", "[io][bounds]") {
  std::string text = "d=4,mask=cu";
  for (int length = 2; length < 30; ++length) {
    text += "_" + std::to_string(length) + "x" + std::to_string(32 - length);
  }
  const PatternDegrees degrees = pattern_degrees(Problem::parse(text));
  const FiveProductParts shared = five_product_parts(degrees);
  REQUIRE(degrees.components.size() == 28);
  REQUIRE(shared.parts.size() == 16);
  FiveProductParts apart{degrees.extent, {}};
  for (const PatternComponent& component : degrees.components) {
    apart.parts.push_back({FiveProductPrice(component), component.pairs(), component.copies});
  }
  for (const double words : {8., 60., 300., 3000.}) {
    for (std::size_t part = 15; part < apart.parts.size(); ++part) {
      CHECK(shared.parts.back().price.work_per_word(words) >=
            apart.parts[part].price.work_per_word(words));
    }
  }
  std::int64_t pairs = 0;
  for (std::size_t part = 15; part < apart.parts.size(); ++part) pairs += apart.parts[part].pairs;
  CHECK(shared.parts.back().pairs == pairs);
  for (const std::int64_t fast_words : {4, 8, 16}) {
    CHECK(backward_small_pattern(shared, {}, fast_words).words <=
          backward_small_pattern(apart, {}, fast_words).words);
  }
}

TEST_CASE("kernels that repeat evaluations have the bound where that is no gain", "[io][bounds]") {
  KernelClass once;
  once.evaluation = Evaluation::once;
  const char* text = "sq=512,d=16,mask=random_20_1";
  for (const std::int64_t fast_words : {16, 64, 256, 1024}) {
    INFO("M " << fast_words);
    CHECK(bound_of(text, once, fast_words).words >= bound_of(text, {}, fast_words).words);
  }
  // With one column an evaluation costs less than the word that it creates is worth.
  CHECK(bound_of("sq=512,d=1,mask=random_20_1", {}, 64).words == 0);
  CHECK(bound_of("sq=512,d=1,mask=random_20_1", once, 2).words > 0);
}

TEST_CASE("the five products without work and outside the class", "[io][bounds]") {
  for (const char* text : {"sq=5,sk=5,d=1,mask=random_0_1", "sq=9,sk=9,d=1,mask=window_0_0"}) {
    CHECK(bound_of(text, {}, 4).words == 0);
  }
  KernelClass shared;
  shared.storage = Storage::key_is_value;
  CHECK_FALSE(bound_of("sq=64,d=8", shared, 64).applies());
  KernelClass sums;
  sums.score_sums = ScoreSums::partial_sums;
  CHECK_FALSE(bound_of("sq=64,d=8", sums, 64).applies());
  CHECK_THROWS_AS(bound_of("sq=64,d=8", {}, 0), InvalidProblem);
}

}  // namespace
}  // namespace attest::io
