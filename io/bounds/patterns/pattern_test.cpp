#include "io/bounds/patterns/pattern.hpp"

#include <algorithm>
#include <bit>
#include <functional>
#include <limits>

#include "core/error.hpp"
#include "core/rng.hpp"
#include "core/testing/catch.hpp"
#include "core/testing/nightly.hpp"
#include "io/bounds/dense/forward.hpp"
#include "io/bounds/segments.hpp"
#include "io/bounds/testing/small_masks.hpp"
#include "io/bounds/testing/smallest_degrees.hpp"

namespace attest::io {
namespace {

using testing::component_of;
using testing::random_rows;

PatternParts parts_of(const std::string& text) {
  return pattern_parts(pattern_degrees(Problem::parse(text)));
}

KernelClass evaluates_once() {
  KernelClass kernel;
  kernel.evaluation = Evaluation::once;
  return kernel;
}

struct HeadDims {
  int qk = 1, v = 1;
};

double twice_rounded_up(double value) { return rounded_up(rounded_up(value)); }

PairWork output_work(HeadDims d) { return {static_cast<double>(d.v), static_cast<double>(d.qk)}; }

// The usable words of a segment, drawn at random.
struct Segment {
  std::vector<unsigned> formed;            // pairs whose weight is formed or carried, by row
  std::vector<unsigned> outputs, columns;  // usable words of O (rows) and V (keys), by column
  int words = 0;

  int multiply_adds(const std::vector<unsigned>& rows) const {
    int sum = 0;
    for (std::size_t c = 0; c < outputs.size(); ++c) {
      for (std::size_t i = 0; i < rows.size(); ++i) {
        if ((outputs[c] >> i & 1u) != 0) sum += std::popcount(formed[i] & columns[c]);
      }
    }
    return sum;
  }
};

unsigned some(Rng& rng, unsigned of) {
  switch (rng.between(0, 2)) {
    case 0:
      return of;
    case 1:
      return of & static_cast<unsigned>(rng.between(0, 255));
    default:
      return of & static_cast<unsigned>(rng.between(0, 255) | rng.between(0, 255));
  }
}

Segment random_segment(Rng& rng, const std::vector<unsigned>& rows, HeadDims d) {
  Segment segment;
  const unsigned whole_rows = rng.between(0, 3) == 0 ? 0u : some(rng, (1u << rows.size()) - 1);
  const unsigned whole_keys = whole_rows == 0 ? 0u : some(rng, 255u);
  const bool carries = rng.between(0, 1) == 0;
  unsigned row_union = 0, key_union = 0;
  segment.words = d.qk * std::popcount(whole_rows);
  unsigned used_keys = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const unsigned inside = (whole_rows >> i & 1u) != 0 ? rows[i] & whole_keys : 0u;
    const unsigned carried = carries ? some(rng, rows[i]) & ~inside : 0u;
    segment.words += std::popcount(carried);
    segment.formed.push_back(inside | carried);
    if (segment.formed.back() != 0) row_union |= 1u << i;
    key_union |= segment.formed.back();
    used_keys |= inside;
  }
  segment.words += d.qk * std::popcount(used_keys);
  const std::int64_t columns = rng.between(1, d.v);
  for (std::int64_t c = 0; c < columns; ++c) {
    segment.outputs.push_back(some(rng, row_union));
    segment.columns.push_back(some(rng, key_union));
    segment.words += std::popcount(segment.outputs.back()) + std::popcount(segment.columns.back());
  }
  return segment;
}

// The greatest share of what the price allows that a random segment does.
double greatest_share(Rng& rng, const std::vector<unsigned>& rows, HeadDims d,
                      const PairDensity& density) {
  double share = 0;
  for (int round = 0; round < 300; ++round) {
    const Segment segment = random_segment(rng, rows, d);
    if (segment.words == 0) continue;
    const auto words = static_cast<double>(segment.words);
    const double allowed = words * most_work_per_word(density, output_work(d), words);
    share = std::max(share, segment.multiply_adds(rows) / allowed);
  }
  return share;
}

TEST_CASE("no random segments do more than their words allow", "[io][bounds]") {
  Rng rng(11);
  double greatest = 0, greatest_of_wrong = 0;
  for (int round = 0; round < 200; ++round) {
    const auto rows = random_rows(rng, rng.between(1, 8), rng.between(2, 8));
    const HeadDims d{static_cast<int>(rng.between(1, 4)), static_cast<int>(rng.between(1, 5))};
    const PatternComponent component = component_of(rows);
    const double share = greatest_share(rng, rows, d, PairDensity(component));
    CHECK(share <= 1);
    greatest = std::max(greatest, share);
    const PairDensity wrong(testing::with_smallest_degrees(component));
    greatest_of_wrong = std::max(greatest_of_wrong, greatest_share(rng, rows, d, wrong));
  }
  CHECK(greatest > 0.9);
  CHECK(greatest_of_wrong > 1);
}

TEST_CASE("the price is that of a search over rows, keys and columns", "[io][bounds]") {
  Rng rng(12);
  for (int round = 0; round < 60; ++round) {
    const PatternComponent component =
        component_of(random_rows(rng, rng.between(1, 8), rng.between(2, 8)));
    const DegreeLimit limit(component);
    const auto rows = static_cast<std::int64_t>(component.row_degrees.size());
    const auto keys = static_cast<std::int64_t>(component.key_degrees.size());
    const HeadDims d{static_cast<int>(rng.between(1, 9)), static_cast<int>(rng.between(1, 9))};
    const PairDensity density(component);
    for (const std::int64_t usable : {2, 3, 5, 9, 17, 40, 100, 300}) {
      const auto words = static_cast<double>(usable);
      const double price = most_work_per_word(density, output_work(d), words);
      for (std::int64_t i = 1; i <= rows; ++i) {
        for (std::int64_t j = 1; j <= keys; ++j) {
          for (std::int64_t columns = 1; columns <= d.v; ++columns) {
            const std::int64_t formed = (d.qk + columns) * (i + j);
            const std::int64_t pairs = limit.pairs_within(i, j);
            const std::int64_t carried = pairs + columns * (i + j);
            const std::int64_t needed = std::min(formed, carried);
            if (needed > usable) continue;
            REQUIRE(static_cast<double>(columns * pairs) <= price * static_cast<double>(needed));
          }
        }
      }
      // And no more than the definition of s gives at every number of pairs, but for rounding.
      double exact = 0, outward = 0;
      for (std::int64_t pairs = 1; pairs <= component.pairs(); ++pairs) {
        double s = 0;
        for (std::int64_t n = 2; n <= rows + keys; ++n) {
          s = std::max(s, static_cast<double>(std::min(pairs, limit.most_pairs(n))) /
                              static_cast<double>(n));
        }
        const double q = std::min(s, static_cast<double>(d.qk));
        const double without_limit = d.v * s / (d.v + q);
        const double paid = q * static_cast<double>(pairs) / words;
        exact = std::max(exact, std::min(without_limit, s - paid));
        outward = std::max(outward, std::min(twice_rounded_up(rounded_up(without_limit)),
                                             twice_rounded_up(s) - rounded_down(paid)));
      }
      CHECK(price >= exact);
      CHECK(price <= twice_rounded_up(outward));
    }
  }
}

TEST_CASE("theorem A by pattern without a mask is theorem A", "[io][bounds]") {
  for (const char* text : {"sq=4096,d=64", "sq=1000,sk=3000,d=16,dv=40", "hq=8,sq=512,d=32"}) {
    const Problem problem = Problem::parse(text);
    const Extent extent = extent_of(problem);
    for (const std::int64_t fast_words : {64, 1000, 4096, 30000}) {
      INFO(text << " M " << fast_words);
      const std::int64_t by_pattern = theorem_a_pattern(parts_of(text), {}, fast_words).words;
      const std::int64_t by_size = theorem_a(extent, {}, fast_words).words;
      // The first segment is charged as if it were full, and the grid is 1/512 apart.
      CHECK(by_pattern + fast_words / 2 >= by_size - by_size / 256);
    }
  }
}

TEST_CASE("theorem B by pattern without a mask is theorem B", "[io][bounds]") {
  const char* text = "sq=4096,d=64";
  const Extent extent = extent_of(Problem::parse(text));
  for (const std::int64_t fast_words : {64, 1024, 4096, 16000}) {
    const std::int64_t by_size = theorem_b(extent, {}, fast_words).words;
    const Bound by_pattern = theorem_b_pattern(parts_of(text), {}, fast_words);
    REQUIRE(by_pattern.is_lower_bound());
    CHECK(by_pattern.words + 2 * fast_words >= by_size - by_size / 256);
    CHECK(theorem_b_pattern(parts_of(text), evaluates_once(), fast_words).words >=
          by_pattern.words);
  }
  // Beyond 4 d^2 repeated scores may pay, and nothing is claimed; with sparse rows they do not.
  CHECK(theorem_b_pattern(parts_of(text), {}, 5 * 4096).words == 0);
  CHECK(theorem_b_pattern(parts_of("sq=4096,d=64,mask=window_32_32"), {}, 5 * 4096).words > 0);
}

TEST_CASE("narrow patterns cost more than their pairs tell", "[io][bounds]") {
  for (const char* text : {"sq=4096,d=64,mask=window_64_64", "sq=1000,d=16,mask=random_2_1"}) {
    const PatternParts pattern = parts_of(text);
    const std::int64_t fast_words = 16 * pattern.extent.head_dim_qk * pattern.extent.head_dim_v;
    const Bound by_pattern = theorem_a_pattern(pattern, {}, fast_words);
    CHECK(by_pattern.words > 2 * theorem_a(pattern.extent, {}, fast_words).words);
  }
}

TEST_CASE("bounds by pattern are monotone in fast_words", "[io][bounds]") {
  const std::int64_t part = attest::testing::is_nightly() ? 8 : 2;
  for (const char* text :
       {"sq=64,sk=64,d=8,mask=causal_br", "sq=60,sk=60,d=5,dv=9,mask=random_7_2",
        "hq=4,hkv=2,sq=40,sk=40,d=6,mask=window_3_4", "d=4,mask=cu_9x9_20x7_3x40"}) {
    const PatternDegrees degrees = pattern_degrees(Problem::parse(text));
    for (const KernelClass& kernel : {KernelClass{}, evaluates_once()}) {
      std::vector<Bound> before = pattern_bounds(degrees, kernel, 1);
      for (std::int64_t fast_words = 2; fast_words <= 3000; fast_words += 1 + fast_words / part) {
        const std::vector<Bound> now = pattern_bounds(degrees, kernel, fast_words);
        for (std::size_t index = 0; index < now.size(); ++index) {
          INFO(text << " " << now[index].name << " fast_words " << fast_words);
          CHECK(now[index].words <= before[index].words);
        }
        before = now;
      }
    }
  }
}

TEST_CASE("components add, and every memory begins empty", "[io][bounds]") {
  const auto words = [](const char* text, const KernelClass& kernel) {
    return theorem_a_pattern(parts_of(text), kernel, 200).words;
  };
  // Small components: what each costs from empty fast memory.
  CHECK(words("b=10,sq=32,d=8", {}) == 10 * words("sq=32,d=8", {}));
  // Large ones: all but the last segment are full.
  CHECK(words("b=10,sq=512,d=8", {}) > 10 * words("sq=512,d=8", {}));
  // Every memory that communicates has a first segment.
  KernelClass blocks;
  blocks.blocks = Blocks::communicating;
  blocks.num_blocks = 10;
  CHECK(words("b=10,sq=256,d=8", blocks) < words("b=10,sq=256,d=8", {}));
  CHECK(words("b=10,sq=256,d=8", blocks) > words("b=9,sq=256,d=8", {}));
}

TEST_CASE("of many components the smallest share one part", "[io][bounds]") {
  std::string text = "d=4,mask=cu";
  for (int length = 2; length < 42; ++length) {
    text += "_" + std::to_string(length) + "x" + std::to_string(44 - length);
  }
  const PatternDegrees degrees = pattern_degrees(Problem::parse(text));
  CHECK(degrees.components.size() == 40);
  const PatternParts pattern = pattern_parts(degrees);
  CHECK(pattern.parts.size() == 16);
  std::int64_t pairs = 0;
  for (const PatternPart& part : pattern.parts) pairs += part.pairs * part.copies;
  CHECK(pairs == degrees.extent.pairs);
  // Sharing a part never raises the bound.
  PatternParts apart{degrees.extent, {}};
  for (const PatternComponent& component : degrees.components) {
    apart.parts.push_back({PairDensity(component), component.pairs(), component.copies});
  }
  for (const std::int64_t fast_words : {8, 60, 300}) {
    CHECK(theorem_a_pattern(pattern, {}, fast_words).words <=
          theorem_a_pattern(apart, {}, fast_words).words);
  }
}

TEST_CASE("patterns without work and outside the class", "[io][bounds]") {
  for (const char* text : {"sq=5,sk=5,d=1,mask=random_0_1", "sq=9,sk=9,d=1,mask=window_0_0"}) {
    for (const Bound& bound : pattern_bounds(pattern_degrees(Problem::parse(text)), {}, 4)) {
      CHECK(bound.words == 0);
    }
  }
  const PatternParts pattern = parts_of("sq=64,sk=64,d=8");
  KernelClass shared;
  shared.storage = Storage::key_is_value;
  CHECK_FALSE(theorem_a_pattern(pattern, shared, 64).applies());
  CHECK_FALSE(theorem_b_pattern(pattern, shared, 64).applies());
  KernelClass partial;
  partial.score_sums = ScoreSums::partial_sums;
  CHECK_FALSE(theorem_b_pattern(pattern, partial, 64).applies());
  CHECK_THROWS_AS(theorem_a_pattern(pattern, {}, 0), InvalidProblem);
}

TEST_CASE("what block-sparse FlashAttention moves is no bound", "[io][bounds]") {
  const Extent extent = extent_of(Problem::parse("sq=1024,d=16,mask=window_100_0"));
  const Bound order = block_sparse_flash_order(extent, 512);
  CHECK(order.leading == 1024 * 16 + static_cast<double>(extent.pairs) * 16 * 16 / 512);
  CHECK(order.label() == "order of one schedule, no lower bound (cited)");
  CHECK_FALSE(order.is_lower_bound());
  CHECK_FALSE(block_sparse_flash_order(extent, 0).applies());
}

}  // namespace
}  // namespace attest::io
