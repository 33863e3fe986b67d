#include "io/bounds/patterns/backward_pattern.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "core/rng.hpp"
#include "core/testing/catch.hpp"
#include "io/bounds/dense/backward.hpp"
#include "io/bounds/segments.hpp"
#include "io/bounds/testing/random_patterns.hpp"
#include "io/bounds/testing/smallest_degrees.hpp"

namespace attest::io {
namespace {

Bound bound_of(const std::string& text, const KernelClass& kernel, std::int64_t fast_words) {
  return backward_pattern_bounds(pattern_degrees(Problem::parse(text)), kernel, fast_words).front();
}

using testing::random_pattern;
using testing::random_table;
using testing::sum;
using testing::Table;

bool whole(const std::vector<int>& row) {
  return std::all_of(row.begin(), row.end(), [](int word) { return word == 1; });
}

struct Done {
  int words = 0, multiply_adds = 0;
};

// A segment with usable words drawn at random, P, dP and dS of a pair each carried or formed.
Done random_segment(Rng& rng, const Table& sees, std::int64_t d) {
  const std::int64_t chances[] = {0, 50, 90, 100};
  const auto some = [&](std::size_t rows) {
    return random_table(rng, rows, d, chances[rng.between(0, 3)]);
  };
  const std::size_t keys = sees.front().size();
  const Table q = some(sees.size()), target = some(sees.size()), dq = some(sees.size());
  const Table k = some(keys), v = some(keys), dk = some(keys), dv = some(keys);
  Done done{sum(q) + sum(target) + sum(dq) + sum(k) + sum(v) + sum(dk) + sum(dv), 0};
  const std::int64_t carried = rng.between(0, 2) * 40;
  const auto carry = [&] {
    const int word = rng.between(0, 99) < carried ? 1 : 0;
    done.words += word;
    return word == 1;
  };
  for (std::size_t i = 0; i < sees.size(); ++i) {
    for (std::size_t j = 0; j < keys; ++j) {
      if (sees[i][j] == 0) continue;
      const bool weight = carry() || (whole(q[i]) && whole(k[j]));
      const bool product = carry() || (whole(target[i]) && whole(v[j]));
      const bool difference = carry() || (weight && product);
      for (std::size_t c = 0; c < static_cast<std::size_t>(d); ++c) {
        if (difference) done.multiply_adds += k[j][c] * dq[i][c] + q[i][c] * dk[j][c];
        if (weight) done.multiply_adds += target[i][c] * dv[j][c];
      }
    }
  }
  return done;
}

// The greatest share of what the price allows that a random segment does.
double greatest_share(Rng& rng, const Table& sees, std::int64_t d, const BackwardPrice& price) {
  double share = 0;
  for (int round = 0; round < 400; ++round) {
    const Done done = random_segment(rng, sees, d);
    if (done.words == 0) continue;
    const auto words = static_cast<double>(done.words);
    const double work = 4.0 * done.multiply_adds / static_cast<double>(d);
    share = std::max(share, work / (words * price.work_per_word(words)));
  }
  return share;
}

TEST_CASE("no random backward segments do more than their words allow", "[io][bounds]") {
  Rng rng(21);
  double greatest = 0, greatest_of_wrong = 0;
  for (int round = 0; round < 60; ++round) {
    const Table sees = random_pattern(rng);
    const std::int64_t d = rng.between(1, 3);
    const PatternComponent component = testing::component_of(sees);
    const double share = greatest_share(rng, sees, d, BackwardPrice(component, d));
    CHECK(share <= 1);
    greatest = std::max(greatest, share);
    const BackwardPrice wrong(testing::with_smallest_degrees(component), d);
    greatest_of_wrong = std::max(greatest_of_wrong, greatest_share(rng, sees, d, wrong));
  }
  CHECK(greatest > 0.9);
  CHECK(greatest_of_wrong > 1);
}

TEST_CASE("theorem C by pattern without a mask is theorem C", "[io][bounds]") {
  for (const char* text : {"sq=4096,d=64", "sq=1000,sk=3000,d=16,dv=40", "hq=8,sq=512,d=32"}) {
    const Extent extent = extent_of(Problem::parse(text));
    for (const std::int64_t fast_words : {64, 1000, 4096, 30000}) {
      INFO(text << " M " << fast_words);
      const std::int64_t by_pattern = bound_of(text, {}, fast_words).words;
      const std::int64_t by_size = theorem_c(extent, {}, fast_words).words;
      // The first segment is charged as if it were full, and three grids round outward.
      CHECK(by_pattern + fast_words / 2 >= by_size - by_size / 64);
    }
  }
}

TEST_CASE("narrow patterns cost the backward pass more than their pairs tell", "[io][bounds]") {
  for (const char* text : {"sq=4096,d=64,mask=window_64_64", "sq=1000,d=16,mask=random_2_1"}) {
    const PatternDegrees degrees = pattern_degrees(Problem::parse(text));
    const std::int64_t fast_words = 16 * degrees.extent.head_dim_qk * degrees.extent.head_dim_qk;
    CHECK(bound_of(text, {}, fast_words).words >
          2 * theorem_c(degrees.extent, {}, fast_words).words);
  }
}

TEST_CASE("the backward bound by pattern is monotone in fast_words", "[io][bounds]") {
  for (const char* text :
       {"sq=64,sk=64,d=8,mask=causal_br", "sq=60,sk=60,d=5,dv=9,mask=random_7_2",
        "hq=4,hkv=2,sq=40,sk=40,d=6,mask=window_3_4", "d=4,mask=cu_9x9_20x7_3x40"}) {
    const BackwardParts parts = backward_parts(pattern_degrees(Problem::parse(text)));
    std::int64_t before = theorem_c_pattern(parts, {}, 1).words;
    for (std::int64_t fast_words = 2; fast_words <= 3000; fast_words += 1 + fast_words / 8) {
      INFO(text << " fast_words " << fast_words);
      const std::int64_t now = theorem_c_pattern(parts, {}, fast_words).words;
      CHECK(now <= before);
      before = now;
    }
  }
}

TEST_CASE("backward components add, and share a part when they are many", "[io][bounds]") {
  CHECK(bound_of("b=10,sq=16,d=16", {}, 2000).words == 10 * bound_of("sq=16,d=16", {}, 2000).words);
  KernelClass blocks;
  blocks.blocks = Blocks::communicating;
  blocks.num_blocks = 10;
  CHECK(bound_of("b=10,sq=256,d=8", blocks, 2000).words <
        bound_of("b=10,sq=256,d=8", {}, 2000).words);

  std::string text = "d=4,mask=cu";
  for (int length = 2; length < 30; ++length) {
    text += "_" + std::to_string(length) + "x" + std::to_string(32 - length);
  }
  const PatternDegrees degrees = pattern_degrees(Problem::parse(text));
  REQUIRE(degrees.components.size() == 28);
  const BackwardParts shared = backward_parts(degrees);
  REQUIRE(shared.size() == 16);
  BackwardParts apart;
  for (const PatternComponent& component : degrees.components) {
    apart.push_back({BackwardPrice(component, 4), component.pairs(), component.copies});
  }
  for (const std::int64_t fast_words : {8, 60, 300}) {
    CHECK(theorem_c_pattern(shared, {}, fast_words).words <=
          theorem_c_pattern(apart, {}, fast_words).words);
  }
}

TEST_CASE("the backward bound by pattern without work and outside the class", "[io][bounds]") {
  for (const char* text : {"sq=5,sk=5,d=1,mask=random_0_1", "sq=9,sk=9,d=1,mask=window_0_0"}) {
    CHECK(bound_of(text, {}, 4).words == 0);
  }
  KernelClass shared;
  shared.storage = Storage::key_is_value;
  CHECK_FALSE(bound_of("sq=64,d=8", shared, 64).applies());
  CHECK_THROWS_AS(bound_of("sq=64,d=8", {}, 0), InvalidProblem);
  // 24 Z d^2 does not fit into 64 bits.
  CHECK_THROWS_AS(BackwardPrice({{2}, {1, 1}, 1, {}}, std::int64_t{1} << 30), CountOverflow);
  CHECK_THROWS_AS(BackwardPrice({{2}, {1, 1}, 1, {}}, 0), InternalError);
}

}  // namespace
}  // namespace attest::io
