// The bounds against the exact least traffic of tiny problems, in the class they speak of.
#include "core/problem.hpp"
#include "core/testing/catch.hpp"
#include "io/bounds/dense/backward.hpp"
#include "io/bounds/dense/forward.hpp"
#include "io/bounds/dense/loss.hpp"
#include "io/bounds/dense/products.hpp"
#include "io/bounds/patterns/backward_pattern.hpp"
#include "io/bounds/patterns/pattern.hpp"
#include "io/pebble/any_order.hpp"
#include "io/pebble/loss_dag.hpp"
#include "io/pebble/minimum.hpp"

namespace attest::io {
namespace {

constexpr std::int64_t kPositions = 400'000;

// A small shape, whose mask is arbitrary.
Problem problem_of_shape(const AttentionShape& shape) {
  Problem problem;
  problem.seqlen_q = shape.seqlen_q;
  problem.seqlen_k = shape.seqlen_k;
  problem.head_dim_qk = shape.head_dim_qk;
  problem.head_dim_v = shape.head_dim_v;
  if (!shape.visible.empty()) {
    auto mask = std::make_shared<BooleanMask>();
    mask->rows = shape.seqlen_q;
    mask->columns = shape.seqlen_k;
    mask->visible = shape.visible;
    mask->spelling = "file_mask.txt";
    problem.mask.boolean = mask;
  }
  return problem;
}

Extent extent_of_shape(const AttentionShape& shape) { return extent_of(problem_of_shape(shape)); }

// The bounds by size, and what rows with fewer than two keys move beside them.
std::vector<Bound> all_forward_bounds(const Extent& extent, const KernelClass& kernel,
                                      std::int64_t fast_words) {
  std::vector<Bound> bounds = forward_bounds(extent, kernel, fast_words);
  bounds.push_back(forward_other_rows(extent, kernel, fast_words, bounds));
  return bounds;
}

// Gradients that are zero are formed from nothing, so the graph lacks them; they are written.
std::int32_t zeros_of(const Extent& extent) {
  return static_cast<std::int32_t>((extent.rows - extent.rows_many) * extent.head_dim_qk +
                                   (extent.keys - extent.columns_many) * extent.head_dim_qk +
                                   (extent.keys - extent.columns_seen) * extent.head_dim_v);
}

// Compares the exact search with every bound that applies; counts how often a bound is reached.
struct Tally {
  int cases = 0, reached = 0;

  void compare(const std::vector<Bound>& bounds, const Minimum& minimum) {
    ++cases;
    const std::optional<Bound> best = greatest(bounds);
    REQUIRE(best);
    if (best->words == minimum.words) ++reached;
    for (const Bound& bound : bounds) {
      if (!bound.is_lower_bound()) continue;
      INFO(bound.to_string() << ", least " << minimum.words);
      CHECK(bound.words <= minimum.words);
    }
  }
};

TEST_CASE("forward bounds are not above the least traffic in any order", "[io][pebble]") {
  Tally tally;
  for (const AttentionShape& shape : {AttentionShape{1, 1, 1, 1, {}},
                                      AttentionShape{1, 1, 3, 2, {}},
                                      AttentionShape{4, 1, 1, 1, {}},
                                      AttentionShape{8, 1, 2, 1, {}},
                                      AttentionShape{6, 1, 4, 2, {}},
                                      AttentionShape{2, 2, 1, 1, {}},
                                      AttentionShape{3, 2, 1, 1, {}},
                                      AttentionShape{2, 3, 1, 1, {}},
                                      AttentionShape{1, 4, 1, 1, {}},
                                      AttentionShape{4, 2, 1, 1, {}},
                                      AttentionShape{2, 2, 1, 2, {}},
                                      AttentionShape{2, 2, 2, 1, {}},
                                      AttentionShape{1, 3, 1, 2, {}},
                                      AttentionShape{3, 3, 1, 1, {}},
                                      AttentionShape{3, 3, 1, 1, {1, 0, 0, 0, 1, 0, 0, 0, 1}},
                                      AttentionShape{3, 3, 1, 1, {1, 0, 0, 1, 1, 0, 1, 1, 1}},
                                      AttentionShape{3, 3, 2, 1, {1, 0, 0, 1, 0, 0, 1, 0, 0}},
                                      AttentionShape{3, 2, 2, 1, {1, 0, 1, 1, 1, 1}},
                                      AttentionShape{2, 2, 2, 1, {1, 0, 1, 1}},
                                      AttentionShape{2, 3, 1, 1, {1, 1, 0, 0, 1, 1}},
                                      AttentionShape{2, 3, 1, 1, {1, 1, 1, 0, 1, 1}},
                                      AttentionShape{2, 3, 1, 1, {1, 1, 0, 1, 1, 1}},
                                      AttentionShape{2, 3, 1, 1, {1, 0, 1, 0, 1, 1}}}) {
    const StepSystem system = any_order_forward(shape, OneKeyRow::copied);
    const Extent extent = extent_of_shape(shape);
    for (std::int32_t fast_words = 3; fast_words <= 8; ++fast_words) {
      const Minimum minimum = least_traffic(system, fast_words, kPositions);
      if (minimum.certainty != Minimum::Certainty::exact) continue;
      INFO(shape.seqlen_q << 'x' << shape.seqlen_k << " d " << shape.head_dim_qk << ' '
                          << shape.head_dim_v << " M " << fast_words);
      tally.compare(all_forward_bounds(extent, {}, fast_words), minimum);
      // Kernels that form every score, one-key rows included, move more.
      if (shape.head_dim_qk > 1) continue;
      const Minimum computed =
          least_traffic(any_order_forward(shape, OneKeyRow::computed), fast_words, kPositions);
      if (computed.certainty == Minimum::Certainty::exact) {
        CHECK(fast_multiplication(extent, {}, fast_words).words <= computed.words);
        CHECK(computed.words >= minimum.words);
      }
    }
  }
  CHECK(tally.cases > 100);
  CHECK(tally.reached > tally.cases / 4);
}

TEST_CASE("no cut into segments is above the least traffic in any order", "[io][pebble]") {
  int cases = 0, above = 0;
  for (const AttentionShape& shape :
       {AttentionShape{2, 2, 1, 1, {}}, AttentionShape{3, 2, 1, 1, {}},
        AttentionShape{2, 3, 1, 1, {}}, AttentionShape{4, 2, 1, 1, {}},
        AttentionShape{3, 3, 1, 1, {}}, AttentionShape{2, 2, 1, 2, {}}}) {
    const StepSystem system = any_order_forward(shape, OneKeyRow::copied);
    const Extent extent = extent_of_shape(shape);
    const SegmentMaximum maximum = [&](double usable_words) {
      return forward_segment_maximum(usable_words, extent.head_dim_qk, extent.head_dim_v);
    };
    const auto work = static_cast<double>(extent.pairs * extent.head_dim_v);
    for (std::int32_t fast_words = 3; fast_words <= 8; ++fast_words) {
      const Minimum minimum = least_traffic(system, fast_words, kPositions);
      if (minimum.certainty != Minimum::Certainty::exact) continue;
      ++cases;
      const SegmentedWork run{work, maximum, fast_words, 1};
      for (std::int64_t transfers = 1; transfers <= minimum.words; ++transfers) {
        CHECK(words_of_segments(run, even_cut(transfers)) <= minimum.words);
        const Cut long_first = cut_with_long_first(fast_words, transfers);
        CHECK(words_of_segments(run, long_first) <= minimum.words);
        // A longer first segment does more: one that only counts more transfers is refuted.
        const std::int64_t short_first = words_of_segments(run, even_cut(transfers));
        if (short_first > 0 && short_first + fast_words > minimum.words) ++above;
      }
    }
  }
  CHECK(cases > 20);
  CHECK(above > 0);
}

TEST_CASE("bounds by pattern are not above the least traffic in any order", "[io][pebble]") {
  Tally tally;
  int above = 0;
  for (const AttentionShape& shape :
       {AttentionShape{2, 2, 1, 1, {}}, AttentionShape{3, 2, 1, 1, {}},
        AttentionShape{2, 2, 1, 2, {}}, AttentionShape{2, 2, 2, 1, {}},
        AttentionShape{3, 3, 1, 1, {1, 0, 0, 1, 1, 0, 1, 1, 1}},
        AttentionShape{3, 3, 1, 1, {1, 1, 0, 0, 1, 1, 1, 0, 1}},
        AttentionShape{3, 3, 1, 1, {1, 1, 0, 1, 1, 0, 0, 0, 0}},
        AttentionShape{3, 3, 1, 1, {1, 1, 1, 0, 1, 1, 0, 0, 1}},
        AttentionShape{3, 2, 2, 1, {1, 0, 1, 1, 1, 1}},
        AttentionShape{2, 3, 1, 1, {1, 1, 0, 0, 1, 1}},
        AttentionShape{2, 4, 1, 1, {1, 1, 0, 0, 0, 0, 1, 1}},
        AttentionShape{2, 4, 1, 1, {1, 1, 1, 1, 0, 0, 1, 1}},
        AttentionShape{3, 3, 1, 1, {0, 0, 0, 1, 1, 0, 1, 1, 0}}}) {
    const StepSystem system = any_order_forward(shape, OneKeyRow::copied);
    const PatternDegrees degrees = pattern_degrees(problem_of_shape(shape));
    PatternDegrees wrong = degrees;  // every component counted twice
    for (auto& component : wrong.components) component.copies *= 2;
    for (std::int32_t fast_words = 3; fast_words <= 8; ++fast_words) {
      const Minimum minimum = least_traffic(system, fast_words, kPositions);
      if (minimum.certainty != Minimum::Certainty::exact) continue;
      INFO(shape.seqlen_q << 'x' << shape.seqlen_k << " d " << shape.head_dim_qk << ' '
                          << shape.head_dim_v << " M " << fast_words);
      tally.compare(pattern_bounds(degrees, {}, fast_words), minimum);
      if (greatest(pattern_bounds(wrong, {}, fast_words))->words > minimum.words) ++above;
    }
  }
  CHECK(tally.cases > 40);
  CHECK(tally.reached > 0);
  CHECK(above > 0);
}

TEST_CASE("bounds with LSE are not above the least traffic of chains", "[io][pebble]") {
  Tally tally;
  KernelClass kernel;
  kernel.lse = LseOutput::written;
  for (const AttentionShape& shape :
       {AttentionShape{1, 1, 1, 1, {}}, AttentionShape{1, 2, 1, 1, {}},
        AttentionShape{3, 1, 1, 1, {}}, AttentionShape{2, 2, 1, 1, {1, 0, 1, 1}}}) {
    const StepSystem system =
        steps_of(forward_dag(shape, {Softmax::folded, 1, OneKeyRow::computed, LseWord::output}));
    for (const std::int32_t fast_words : {4, 5, 8}) {
      const Minimum minimum = least_traffic(system, fast_words, kPositions);
      if (minimum.certainty != Minimum::Certainty::exact) continue;
      tally.compare(all_forward_bounds(extent_of_shape(shape), kernel, fast_words), minimum);
    }
  }
  CHECK(tally.cases >= 8);
}

TEST_CASE("backward bounds are not above the least traffic of chains", "[io][pebble]") {
  Tally tally;
  int above = 0;
  for (const AttentionShape& shape :
       {AttentionShape{1, 2, 1, 1, {}}, AttentionShape{2, 1, 1, 1, {}}}) {
    for (const Statistics statistics : {Statistics::given, Statistics::recomputed}) {
      const StepSystem system = steps_of(backward_dag(shape, statistics));
      const Extent extent = extent_of_shape(shape);
      for (const std::int32_t fast_words : {6, 8, 12}) {
        Minimum minimum = least_traffic(system, fast_words, kPositions);
        if (minimum.certainty != Minimum::Certainty::exact) continue;
        minimum.words += zeros_of(extent);
        std::vector<Bound> bounds = backward_bounds(extent, {}, fast_words);
        bounds.push_back(backward_other_rows(extent, {}, fast_words, bounds));
        KernelClass reads;
        reads.saved = SavedOutputs::read;
        const Bound saved = backward_saved_outputs(extent, reads, fast_words, bounds);
        // It holds for kernels that read O and LSE, and not for those that do without.
        if (statistics == Statistics::given) {
          bounds.push_back(saved);
        } else if (saved.words > minimum.words) {
          ++above;
        }
        tally.compare(bounds, minimum);
      }
    }
  }
  CHECK(tally.cases >= 4);
  CHECK(tally.reached > 0);
  CHECK(above > 0);
}

TEST_CASE("backward bounds by pattern are not above the least traffic of chains", "[io][pebble]") {
  Tally tally;
  int above = 0;
  for (const AttentionShape& shape :
       {AttentionShape{1, 2, 1, 1, {}}, AttentionShape{2, 2, 1, 1, {1, 1, 0, 0}},
        AttentionShape{1, 3, 1, 1, {1, 0, 1}}, AttentionShape{2, 2, 1, 1, {1, 1, 0, 1}}}) {
    for (const Statistics statistics : {Statistics::given, Statistics::recomputed}) {
      const StepSystem system = steps_of(backward_dag(shape, statistics));
      const PatternDegrees degrees = pattern_degrees(problem_of_shape(shape));
      PatternDegrees wrong = degrees;  // every component counted four times
      for (auto& component : wrong.components) component.copies *= 4;
      for (std::int32_t fast_words = 5; fast_words <= 9; ++fast_words) {
        Minimum minimum = least_traffic(system, fast_words, kPositions);
        if (minimum.certainty != Minimum::Certainty::exact) continue;
        minimum.words += zeros_of(degrees.extent);
        std::vector<Bound> bounds = backward_pattern_bounds(degrees, {}, fast_words);
        bounds.push_back(backward_other_rows(degrees.extent, {}, fast_words, bounds));
        tally.compare(bounds, minimum);
        if (backward_pattern_bounds(wrong, {}, fast_words).front().words > minimum.words) ++above;
      }
    }
  }
  CHECK(tally.cases > 20);
  CHECK(above > 0);
}

TEST_CASE("loss gradient bounds are not above the least traffic of chains", "[io][pebble]") {
  // n = 2, d = 1.
  Tally tally;
  for (const LossProduct product : {LossProduct::through_w, LossProduct::direct}) {
    const StepSystem system = steps_of(loss_gradient_dag(2, 1, product));
    for (const std::int32_t fast_words : {8, 10, 16}) {
      const Minimum minimum = least_traffic(system, fast_words, kPositions);
      if (minimum.certainty != Minimum::Certainty::exact) continue;
      tally.compare(loss_bounds({2, 1}, {}, fast_words), minimum);
    }
  }
  CHECK(tally.cases >= 2);
  CHECK(tally.reached > 0);
}

}  // namespace
}  // namespace attest::io
