#include "io/bounds/dense/forward.hpp"

#include <cmath>

#include "core/error.hpp"
#include "core/testing/catch.hpp"
#include "core/testing/nightly.hpp"
#include "io/bounds/compulsory.hpp"

namespace attest::io {
namespace {

Extent extent_of_text(const char* text) { return extent_of(Problem::parse(text)); }

TEST_CASE("compulsory forward traffic", "[io][bounds]") {
  const KernelClass kernel;
  CHECK(compulsory_forward(dense_extent(4, 6, 2, 3), kernel).words == 4 * 2 + 6 * 5 + 4 * 3);
  KernelClass with_lse;
  with_lse.lse = LseOutput::written;
  CHECK(compulsory_forward(dense_extent(4, 6, 2, 3), with_lse).words == 4 * 2 + 6 * 5 + 4 * 3 + 4);
  // One key: O copies V, and neither q nor k is needed, unless LSE is.
  CHECK(compulsory_forward(dense_extent(4096, 1, 64, 64), kernel).words == 262208);
  CHECK(compulsory_forward(dense_extent(8, 1, 2, 1), kernel).words == 9);
  CHECK(compulsory_forward(dense_extent(8, 1, 2, 1), with_lse).words == 9 + 8 * 2 + 2 + 8);
  CHECK(compulsory_forward(extent_of_text("sq=3,sk=3,d=1,mask=causal_tl"), kernel).words == 11);
}

TEST_CASE("F is the segment maximum of theorem A", "[io][bounds]") {
  // The proof's inner problem by brute force: f pairs formed from whole rows, y - f carried by a
  // word each, kk columns of V and O at full count: 2 d_k sqrt(f) + (y - f) + 2 kk sqrt(y) words.
  for (std::int64_t d_k : {1, 2, 5, 16}) {
    for (std::int64_t d_v : {1, 3, 8, 32}) {
      for (double usable : {5., 40., 333., 2048., 30000.}) {
        double best = 0;
        const int kSteps = attest::testing::is_nightly() ? 400 : 80;
        for (int column = 1; column <= 8 * d_v; ++column) {
          const double columns = column / 8.0;
          for (int step = 0; step <= kSteps; ++step) {
            const double share = static_cast<double>(step) / kSteps;  // of y formed inside
            // The largest y within the words, by bisection.
            double low = 0, high = usable * usable;
            for (int iteration = 0; iteration < 60; ++iteration) {
              const double y = (low + high) / 2;
              const double words = 2 * static_cast<double>(d_k) * std::sqrt(share * y) +
                                   (1 - share) * y + 2 * columns * std::sqrt(y);
              (words <= usable ? low : high) = y;
            }
            best = std::max(best, columns * low);
          }
        }
        INFO("d_k " << d_k << " d_v " << d_v << " B " << usable);
        const double maximum = forward_segment_maximum(usable, d_k, d_v);
        CHECK(best <= maximum);
        // The columns are searched in steps of an eighth.
        if (usable > 1000) CHECK(best >= maximum * 0.9);
      }
    }
  }
}

TEST_CASE("segment maxima where carried words are the best", "[io][bounds]") {
  // d_k is large, so a pair costs least as one carried word; below 3 d_v^2 words not all columns
  // are used.
  CHECK(forward_segment_maximum(250, 100, 10) >= 250. / 3 * std::sqrt(250. / 3));
  // Every score read as one word: 1000 pairs need no more than 1000 words.
  CHECK(scores_only_large(dense_extent(100, 10, 100, 1), {}, 10).words <= 1000);
  // Not less than its closed form, Z d_k^2/M, which no length tried reaches here.
  CHECK(scores_only_large(dense_extent(16384, 16384, 64, 64), {}, 8192).words == 1 << 27);
}

TEST_CASE("theorem A and its corollary", "[io][bounds]") {
  const KernelClass kernel;
  // Whole segments: 30, where real ones would give 31 (K5).
  CHECK(theorem_a(dense_extent(3, 3, 1, 3), kernel, 4).words == 30);
  const Extent extent = dense_extent(4096, 4096, 64, 64);
  const auto pairs = static_cast<double>(extent.pairs);
  for (const std::int64_t theta : {4, 8, 16, 64}) {
    const std::int64_t fast_words = theta * 4096;
    const Bound corollary = theorem_a_large(extent, kernel, fast_words);
    REQUIRE(corollary.is_lower_bound());
    CHECK(corollary.words == static_cast<std::int64_t>(4 * pairs / static_cast<double>(theta)));
    // The lengths tried are 1/64 apart, and near the best length the value is flat.
    CHECK(theorem_a(extent, kernel, fast_words).words >=
          corollary.words - corollary.words / (64 * 64));
  }
  CHECK_FALSE(theorem_a_large(extent, kernel, 4 * 4096 - 1).applies());
  CHECK_FALSE(theorem_a_large(dense_extent(64, 64, 4, 5), kernel, 1000).applies());
  // flash2_row reads and writes this much, of which little is above the bound.
  const std::int64_t block = (16384 - 1) / (2 * 64 + 3);
  const std::int64_t moved = 4096 * 64 * 2 + ((4096 + block - 1) / block) * 4096 * 128;
  CHECK(moved >= theorem_a(extent, kernel, 16384).words);
  CHECK(moved * 100 <= theorem_a(extent, kernel, 16384).words * 110);
}

TEST_CASE("theorem B and its range", "[io][bounds]") {
  const KernelClass kernel;
  KernelClass once;
  once.evaluation = Evaluation::once;
  const Extent extent = dense_extent(4096, 4096, 64, 64);
  const auto pairs = static_cast<double>(extent.pairs);
  for (const std::int64_t fast_words : {64, 1024, 4096, 16384}) {
    const auto words = static_cast<double>(fast_words);
    const double linear = 2 * pairs * 128 / std::sqrt(words) - pairs - 2 * words;
    const Bound bound = theorem_b(extent, kernel, fast_words);
    REQUIRE(bound.is_lower_bound());
    // The first and the last segment are worth 2.6 M more than the formula says (lemma 4, X = 2M).
    CHECK(static_cast<double>(bound.words) >= linear + 2.6 * words);
    CHECK(static_cast<double>(bound.words) <= linear + 3 * words);
    // With the ceiling the last one is worth a word, and not every length is tried.
    CHECK(theorem_b_once(extent, once, fast_words).words >= bound.words - 2 * fast_words);
    CHECK_FALSE(theorem_b_once(extent, kernel, fast_words).applies());
  }
  CHECK_FALSE(theorem_b(extent, kernel, 16385).applies());
  CHECK(theorem_b(extent, once, 16385).applies());
  CHECK(theorem_b(extent, kernel, 16385).why_not() ==
        "range: fast_words is 16385; it must be at most 16384");
  // QK^T alone is weaker.
  CHECK(scores_only(extent, kernel, 1024).words < theorem_b(extent, kernel, 1024).words);
  CHECK(scores_only(extent, kernel, 1024).words >=
        static_cast<std::int64_t>(pairs * (2 * 64 / 32. - 1) - 2048));
  CHECK(scores_only_large(extent, kernel, 8192).words >=
        static_cast<std::int64_t>(pairs * 4096 / 8192 - 8192));
}

TEST_CASE("forward bounds are monotone in fast_words", "[io][bounds]") {
  KernelClass once;
  once.evaluation = Evaluation::once;
  for (const char* text : {"sq=64,sk=64,d=8", "sq=33,sk=129,d=16,dv=5", "sq=100,sk=7,d=3,dv=24",
                           "hq=4,hkv=2,sq=40,sk=40,d=6,mask=causal_br"}) {
    const Extent extent = extent_of_text(text);
    std::vector<Bound> before = forward_bounds(extent, once, 1);
    for (std::int64_t fast_words = 2; fast_words <= 4000; fast_words += 1 + fast_words / 16) {
      const std::vector<Bound> now = forward_bounds(extent, once, fast_words);
      for (std::size_t index = 0; index < now.size(); ++index) {
        if (!now[index].applies() || !before[index].applies()) continue;
        INFO(text << " " << now[index].name << " fast_words " << fast_words);
        CHECK(now[index].words <= before[index].words);
      }
      before = now;
    }
  }
}

TEST_CASE("heads add, and communicating blocks begin empty", "[io][bounds]") {
  const KernelClass kernel;
  const Extent one = extent_of_text("sq=64,sk=64,d=8");
  const Extent heads = extent_of_text("b=2,hq=3,sq=64,sk=64,d=8");
  CHECK(compulsory_forward(heads, kernel).words == 6 * compulsory_forward(one, kernel).words);
  CHECK(theorem_a_large(heads, kernel, 256).words == 6 * theorem_a_large(one, kernel, 256).words);
  KernelClass blocks;
  blocks.num_blocks = 8;
  CHECK(theorem_a(one, blocks, 64).words == theorem_a(one, kernel, 64).words);
  blocks.blocks = Blocks::communicating;
  CHECK(theorem_a(one, blocks, 64).words < theorem_a(one, kernel, 64).words);
  // As many memories as hold the whole problem when they are filled once: nothing is left.
  blocks.num_blocks = 1 << 20;
  CHECK(theorem_a(one, blocks, 64).words == 0);
  // The corollary needs no more: each block moves its share.
  CHECK(theorem_a_large(heads, blocks, 256).words == theorem_a_large(heads, kernel, 256).words);
}

TEST_CASE("a bound refuses impossible sizes", "[io][bounds]") {
  const Extent extent = dense_extent(4, 4, 2, 2);
  for (const std::int64_t fast_words : {0, -5}) {
    CHECK_THROWS_AS(forward_bounds(extent, {}, fast_words), InvalidProblem);
  }
  KernelClass none;
  none.num_blocks = 0;
  CHECK_THROWS_AS(theorem_a(extent, none, 8), InvalidProblem);
}

TEST_CASE("rows with fewer than two keys count beside the others", "[io][bounds]") {
  const Extent extent = extent_of(Problem::parse("sq=64,sk=64,d=8,dv=6,mask=causal_br"));
  KernelClass kernel;
  for (const std::int64_t fast_words : {16, 64}) {
    const std::vector<Bound> others = forward_bounds(extent, kernel, fast_words);
    std::int64_t most = 0;
    for (const Bound& bound : others) {
      if (bound.is_lower_bound() && bound.name != "compulsory_forward") {
        most = std::max(most, bound.words);
      }
    }
    const Bound bound = forward_other_rows(extent, kernel, fast_words, others);
    REQUIRE(bound.is_lower_bound());
    CHECK(bound.words == most + 6);  // the first row sees one key, which others see as well
    kernel.lse = LseOutput::written;
    CHECK(forward_other_rows(extent, kernel, fast_words, others).words == bound.words + 64);
    kernel.lse = LseOutput::none;
    // The bound takes nothing of itself, nor of one that counts all rows already.
    CHECK(forward_other_rows(extent, kernel, fast_words, {bound, others.front()}).words == 6);
  }
  // Every row sees one key.
  const Extent diagonal = extent_of(Problem::parse("sq=64,sk=64,d=8,dv=6,mask=window_0_0"));
  CHECK(forward_other_rows(diagonal, kernel, 16, forward_bounds(diagonal, kernel, 16)).words ==
        64 * 6 + 64 * 6);
}

}  // namespace
}  // namespace attest::io
