// Kernels outside the class of the bounds: no bound is printed where its conditions fail. Each case
// shows first that a bound which ignored the condition would be above what the kernel moves.
#include <cmath>
#include <fstream>
#include <iterator>

#include "core/error.hpp"
#include "core/testing/catch.hpp"
#include "io/bounds/dense/backward.hpp"
#include "io/bounds/dense/forward.hpp"
#include "io/bounds/dense/loss.hpp"
#include "io/bounds/dense/products.hpp"
#include "io/bounds/patterns/pattern.hpp"

namespace attest::io {
namespace {

std::int64_t tiles(std::int64_t extent, std::int64_t block) { return (extent + block - 1) / block; }

// The greatest lower bound, 0 if none applies.
std::int64_t greatest_words(const std::vector<Bound>& bounds) {
  const std::optional<Bound> best = greatest(bounds);
  return best ? best->words : 0;
}

std::vector<std::string> lower_bounds(const std::vector<Bound>& bounds) {
  std::vector<std::string> names;
  for (const Bound& bound : bounds) {
    if (bound.is_lower_bound()) names.push_back(bound.name);
    CHECK((bound.label().rfind("lower bound", 0) == 0) == bound.is_lower_bound());
    if (!bound.applies()) {
      CHECK(bound.words == 0);
      CHECK_FALSE(bound.why_not().empty());
    }
  }
  return names;
}

using Names = std::vector<std::string>;

TEST_CASE("K4: rows with one key", "[io][bounds][class]") {
  // O_i = V_0: a kernel copies one row q times.
  for (const std::int64_t fast_words : {4, 256, 4096}) {
    const Extent one_key = dense_extent(4096, 1, 64, 64);
    Extent naive = one_key;  // as if such a row needed its score
    naive.pairs = naive.rows_many = 4096;
    naive.columns_many = 1;
    const std::int64_t moved = 64 + 4096 * 64;
    CHECK(greatest_words(forward_bounds(naive, {}, fast_words)) > moved);
    CHECK(greatest_words(forward_bounds(one_key, {}, fast_words)) <= moved);
  }
  // (8, 1, 2, 1) at 8 words: least traffic 9. Causal 3 x 3, d = 1, at 6 words: least traffic 11.
  CHECK(greatest_words(forward_bounds(dense_extent(8, 1, 2, 1), {}, 8)) <= 9);
  const Extent causal = extent_of(Problem::parse("sq=3,sk=3,d=1,mask=causal_tl"));
  CHECK(greatest_words(forward_bounds(causal, {}, 6)) <= 11);
  // A window of one key and decoding with one key see nothing else.
  for (const char* text : {"sq=512,sk=512,d=16,mask=window_0_0", "sq=1,sk=1,d=16,dv=4"}) {
    const Extent extent = extent_of(Problem::parse(text));
    CHECK(extent.pairs == 0);
    const std::int64_t copied = (extent.columns_seen + extent.rows) * extent.head_dim_v;
    CHECK(greatest_words(forward_bounds(extent, {}, 16)) == copied);
    // Backward: dS = 0; dO goes to dV, dQ and dK are written.
    CHECK(greatest_words(backward_bounds(extent, {}, 16)) ==
          extent.rows * (extent.head_dim_qk + extent.head_dim_v) +
              extent.keys * (extent.head_dim_qk + extent.head_dim_v));
  }
}

TEST_CASE("K3: shared storage", "[io][bounds][class]") {
  // K = V, all of a key's row resident for scores and output: half the traffic of K and V apart.
  const std::int64_t n = 8192, d = 32, fast_words = 64 * d * d;
  const std::int64_t block = (fast_words - d - 1) / (2 * d + 3);
  const std::int64_t moved = n * d + tiles(n, block) * n * d + n * d;
  const Extent extent = dense_extent(n, n, d, d);
  CHECK(greatest_words(forward_bounds(extent, {}, fast_words)) > moved);
  KernelClass kernel;
  kernel.storage = Storage::key_is_value;
  const std::vector<Bound> bounds = forward_bounds(extent, kernel, fast_words);
  CHECK(lower_bounds(bounds) == Names{"compulsory_forward"});
  CHECK(greatest_words(bounds) == 3 * n * d);  // Q and K read, O written
  CHECK(bounds[3].why_not() == "K3: K and V share storage");
  CHECK(lower_bounds(backward_bounds(extent, kernel, fast_words)) == Names{"compulsory_backward"});

  // V the first 8 of 12 columns of K, and the other way round.
  CHECK(compulsory_forward(dense_extent(5, 7, 12, 8), kernel).words == 5 * 12 + 7 * 12 + 5 * 8);
  CHECK(compulsory_forward(dense_extent(5, 7, 8, 12), kernel).words == 5 * 8 + 7 * 12 + 5 * 12);
  kernel.storage = Storage::query_is_key;
  CHECK(lower_bounds(forward_bounds(extent, kernel, fast_words)) == Names{"compulsory_forward"});
  CHECK(compulsory_forward(extent, kernel).words == 3 * n * d);
  // Stride 0: one word may be a whole operand; what is written remains.
  kernel.storage = Storage::unknown;
  CHECK(compulsory_forward(extent, kernel).words == n * d);
  CHECK(compulsory_backward(extent, kernel).words == 3 * n * d);
  CHECK(lower_bounds(loss_bounds({64, 8}, kernel, 64)) == Names{"compulsory_loss"});
  CHECK(compulsory_loss({64, 8}, kernel).words == 64);
  CHECK_FALSE(fast_multiplication(extent, kernel, fast_words).applies());
}

TEST_CASE("K5: segments of real length", "[io][bounds][class]") {
  // q = k = 3, d_k = 1, d_v = 3, four words: all whole lengths give 30, real ones 30.2, so that 31
  // words would be needed. (That SegmentLength takes no real number is asserted in segments_test.)
  const double work = 27, fast_words = 4;
  const auto maximum = [](double usable_words) {
    return forward_segment_maximum(usable_words, 1, 3);
  };
  // Y + X (h - 1) over lengths that are so many to a transfer; 0 where no other segment follows.
  const auto greatest_of = [&](int steps) {
    double greatest = 0;
    for (int first = 1; maximum(static_cast<double>(first) / steps) < work; ++first) {
      const double longest = static_cast<double>(first) / steps;
      for (int others = 1; others <= first; ++others) {
        const double length = static_cast<double>(others) / steps;
        if (longest > fast_words + length) continue;
        const double further = std::ceil((work - maximum(longest)) / maximum(fast_words + length));
        greatest = std::max(greatest, longest + length * (further - 1));
      }
    }
    return greatest;
  };
  CHECK(greatest_of(1) == 29);  // the last segment has one transfer at least
  CHECK(theorem_a(dense_extent(3, 3, 1, 3), {}, 4).words == 30);
  CHECK(greatest_of(100) > 30);
}

TEST_CASE("recomputing kernels", "[io][bounds][class]") {
  // Theorem B with the ceiling is not monotone in the number R of evaluations: a kernel with more
  // of them may move less than the value at R = Z.
  const double pairs = 1105, d_k = 16, d_v = 11, fast_words = 950, length = 3 * fast_words;
  const auto value = [&](double evaluations) {
    const double work = pairs * d_v + evaluations * d_k - product_segment_maximum(length);
    const double segments = std::ceil(work / product_segment_maximum(fast_words + length));
    return length * segments + 1 - evaluations;
  };
  double least = value(pairs);
  for (int extra = 0; extra < 3 * pairs; ++extra) least = std::min(least, value(pairs + extra));
  CHECK(value(pairs) == 1746);
  CHECK(value(pairs) - least == 2782);

  KernelClass recomputes;
  const Extent dense = dense_extent(65, 17, 16, 11);
  CHECK(dense.pairs == 1105);
  CHECK(lower_bounds(forward_bounds(dense, recomputes, 950)) ==
        Names{"compulsory_forward", "scores_only", "scores_only_large", "theorem_a", "theorem_b"});
  // Above 4 d_k^2 words theorem B needs the declaration altogether.
  CHECK(lower_bounds(forward_bounds(dense, recomputes, 1025)) ==
        Names{"compulsory_forward", "scores_only_large", "theorem_a"});
  KernelClass once;
  once.evaluation = Evaluation::once;
  CHECK(lower_bounds(forward_bounds(dense, once, 1025)) == Names{"compulsory_forward",
                                                                 "scores_only_large", "theorem_a",
                                                                 "theorem_b", "theorem_b_once"});
  CHECK(lower_bounds(backward_bounds(dense, recomputes, 100)) ==
        Names{"compulsory_backward", "theorem_c", "backward_small"});
  CHECK(lower_bounds(backward_bounds(dense, once, 1025)) ==
        Names{"compulsory_backward", "theorem_c", "theorem_c_large", "backward_small"});
  CHECK_FALSE(loss_small_once({64, 8}, recomputes, 16).applies());
  CHECK_FALSE(sparse_inputs_once(dense, {100, 50}, recomputes, 16).applies());

  // Partial sums of one score that several evaluations share.
  once.score_sums = ScoreSums::partial_sums;
  CHECK(lower_bounds(forward_bounds(dense, once, 950)) ==
        Names{"compulsory_forward", "scores_only_large", "theorem_a"});
}

TEST_CASE("K1: words that are not counted", "[io][bounds][class]") {
  const Extent extent = dense_extent(256, 256, 16, 16);
  for (const FastMemoryUse use : {FastMemoryUse::preloaded, FastMemoryUse::uncounted_words}) {
    // Everything in fast memory from the start, or in registers: only O moves.
    KernelClass kernel;
    CHECK(greatest_words(forward_bounds(extent, kernel, 32)) > 256 * 16);
    kernel.fast_memory = use;
    CHECK(lower_bounds(forward_bounds(extent, kernel, 32)).empty());
    CHECK(lower_bounds(backward_bounds(extent, kernel, 32)).empty());
    CHECK(lower_bounds(loss_bounds({64, 8}, kernel, 32)).empty());
    CHECK_FALSE(fast_multiplication(extent, kernel, 32).applies());
    CHECK_FALSE(matrix_product({8, 8, 8}, kernel, 32).applies());
  }
}

TEST_CASE("K2: shortcuts and scale zero", "[io][bounds][class]") {
  const Problem problem = Problem::parse("sq=64,sk=64,d=8,scale=0");
  const KernelClass kernel = plain_class(problem);
  // Every weight is 1/64: V is read and O written, Q and K are not.
  const Extent extent = extent_of(problem);
  CHECK(greatest_words(forward_bounds(extent, {}, 32)) > 2 * 64 * 8);
  CHECK(lower_bounds(forward_bounds(extent, kernel, 32)).empty());
  CHECK(lower_bounds(backward_bounds(extent, kernel, 32)).empty());
  CHECK(plain_class(Problem::parse("sq=64,sk=64,d=8")).products == Products::standard);
  // Fast multiplication is the one bound that speaks of such kernels.
  CHECK(fast_multiplication(extent, kernel, 32).applies());
}

TEST_CASE("K6: parallel blocks", "[io][bounds][class]") {
  // 64 blocks hold 64 rows of Q and O each; every word of K and V is read once for all of them.
  const std::int64_t n = 4096, d = 16, block = 64;
  const std::int64_t fast_words = block * (2 * d + 3) + 1;
  const std::int64_t moved = 4 * n * d;
  const Extent extent = dense_extent(n, n, d, d);
  KernelClass kernel;
  kernel.num_blocks = n / block;
  CHECK(greatest_words(forward_bounds(extent, kernel, fast_words)) > moved);
  kernel.blocks = Blocks::shared_transfers;
  CHECK(lower_bounds(forward_bounds(extent, kernel, fast_words)) == Names{"compulsory_forward"});
  CHECK(greatest_words(forward_bounds(extent, kernel, fast_words)) <= moved);
}

TEST_CASE("only proved and cited bounds are called lower bounds", "[io][bounds][class]") {
  KernelClass kernel;
  kernel.evaluation = Evaluation::once;
  kernel.movement = RowMovement::whole_index;
  const Extent extent = dense_extent(64, 64, 8, 8);
  std::vector<Bound> all = forward_bounds(extent, kernel, 2048);
  for (const auto& more :
       {backward_bounds(extent, kernel, 2048), loss_bounds({64, 8}, kernel, 2048),
        pattern_bounds(pattern_degrees(Problem::parse("sq=64,sk=64,d=8")), kernel, 2048),
        std::vector<Bound>{matrix_product({8, 8, 8}, kernel, 2048),
                           fast_multiplication(extent, kernel, 2048),
                           backward_saved_outputs(extent, kernel, 2048, {}),
                           backward_single_pass(extent, kernel, 2048, {}),
                           forward_other_rows(extent, kernel, 2048, {}),
                           backward_other_rows(extent, kernel, 2048, {}),
                           sparse_inputs_once(extent, {9, 9}, kernel, 2048),
                           sparse_product_order(extent, {9, 9}, kernel, 2048),
                           sparse_attention_order({9, 9, 9, 9}, kernel, 2048)}}) {
    all.insert(all.end(), more.begin(), more.end());
  }
  int figures = 0;
  for (const Bound& bound : all) {
    const bool known = bound.tag == Tag::proved || bound.tag == Tag::cited;
    if (!known) {
      ++figures;
      CHECK(bound.label().find("no lower bound") != std::string::npos);
      CHECK_FALSE(bound.is_lower_bound());
    }
    if (bound.form != Form::words) CHECK_FALSE(bound.is_lower_bound());
  }
  CHECK(figures == 2);  // loss_large, backward_conjecture
  // Every bound has a page, and the page names it.
  for (const Bound& bound : all) {
    const std::string folder = "docs/theory/bounds/";
    INFO(bound.name << " in " << bound.page);
    REQUIRE(bound.page.rfind(folder, 0) == 0);
    std::ifstream file(std::string(ATTEST_DOCS) + "/" + bound.page.substr(folder.size()));
    const std::string page{std::istreambuf_iterator<char>(file), {}};
    CHECK(page.find("`" + bound.name + "`") != std::string::npos);
    CHECK(page.find("Need") != std::string::npos);
    const bool has_proof = page.find("*Proof.*") != std::string::npos;
    if (bound.tag == Tag::proved) CHECK(has_proof);
  }
  // A figure above every bound is still not the greatest lower bound.
  Bound figure;
  figure.tag = Tag::conjectured;
  figure.words = 1 << 30;
  CHECK_FALSE(greatest({figure}));
  CHECK(figure.label() == "figure, no lower bound (conjectured)");
}

TEST_CASE("the conditions are printed with what was found", "[io][bounds][class]") {
  KernelClass kernel;
  kernel.storage = Storage::query_is_key;
  kernel.blocks = Blocks::shared_transfers;
  const std::vector<Condition> conditions = class_conditions(kernel);
  REQUIRE(conditions.size() == 6);
  int failed = 0;
  for (const Condition& condition : conditions) {
    const bool fails = condition.state == Condition::State::failed;
    CHECK(fails == !condition.got.empty());
    failed += fails ? 1 : 0;
  }
  CHECK(failed == 2);
  CHECK(theorem_a(dense_extent(4, 4, 2, 2), kernel, 8).why_not() ==
        "K3: Q and K share storage; K6: a word read once for several blocks is counted once");
}

}  // namespace
}  // namespace attest::io
