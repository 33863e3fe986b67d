// Every schedule without lists is a legal pebbling with the words it counts.
#include <algorithm>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/problem.hpp"
#include "core/rng.hpp"
#include "core/testing/catch.hpp"
#include "schedules/bands/held_pairs.hpp"
#include "schedules/bands/held_scores.hpp"
#include "schedules/bands/rolling_backward.hpp"
#include "schedules/bands/rolling_p.hpp"
#include "schedules/bands/rolling_queries.hpp"
#include "schedules/dense/column_groups.hpp"
#include "schedules/dense/flash1.hpp"
#include "schedules/dense/key_stationary.hpp"
#include "schedules/dense/split_kv.hpp"
#include "schedules/dense/square_tiled.hpp"
#include "schedules/dense/standard.hpp"
#include "schedules/dense/stored_gradients.hpp"
#include "schedules/dense/stored_scores.hpp"
#include "schedules/dense/two_pass.hpp"
#include "schedules/engine/family.hpp"
#include "schedules/engine/heads.hpp"
#include "schedules/loss/loss.hpp"
#include "schedules/testing/dags.hpp"
#include "schedules/testing/pebblings.hpp"

namespace attest::schedules {
namespace {

using io::Dag;
using testing::backward_inputs, testing::forward_inputs, testing::inputs_of, testing::kPebblings;
using testing::check_legal, testing::check_masked, testing::pebbling_of, testing::Sizes;
using testing::LossOrder;
using testing::Normalization;
using testing::Saved;

std::int32_t narrow(std::int64_t value) { return static_cast<std::int32_t>(value); }

Sizes random_sizes(Rng& rng) {
  Sizes sizes;
  const auto draw = [&] { return narrow(rng.between(1, 5)); };
  // With one key the weight is its own sum and the pebble game has one word for both; backward, the
  // scores are no words of the computation at all.
  sizes.shape = {draw(), 1 + draw(), draw(), draw(), {}};
  sizes.problem.seqlen_q = sizes.shape.seqlen_q;
  sizes.problem.seqlen_k = sizes.shape.seqlen_k;
  sizes.problem.head_dim_qk = sizes.shape.head_dim_qk;
  sizes.problem.head_dim_v = sizes.shape.head_dim_v;
  return sizes;
}

// make(tile) gives schedule and computation; tile() a random extent.
template <class Make>
void forward(const char* name, const Make& make) {
  Rng rng(99);
  for (int round = 0; round < kPebblings; ++round) {
    const Sizes sizes = random_sizes(rng);
    const AbiProblem form(sizes.problem, 1);
    attest_forward_args args{};
    args.problem = form.get();
    const auto [schedule, dag] = make([&] { return rng.between(1, 6); }, sizes.shape);
    INFO(name << " on " << sizes.problem.to_string() << " round " << round);
    check_legal(dag, pebbling_of(schedule, forward_head(args, {0, 0}), dag, forward_inputs()), rng);
  }
}

template <class Make>
void backward(const char* name, const io::InputName& inputs, const Make& make) {
  Rng rng(99);
  for (int round = 0; round < kPebblings; ++round) {
    const Sizes sizes = random_sizes(rng);
    const AbiProblem form(sizes.problem, 1);
    attest_backward_args args{};
    args.problem = form.get();
    const auto [schedule, dag] = make([&] { return rng.between(1, 6); }, sizes.shape);
    INFO(name << " on " << sizes.problem.to_string() << " round " << round);
    check_legal(dag, pebbling_of(schedule, backward_head(args, {0, 0}), dag, inputs), rng);
  }
}

template <class Make>
void loss(const char* name, const Make& make) {
  Rng rng(99);
  for (int round = 0; round < kPebblings; ++round) {
    const std::int64_t n = rng.between(1, 5), d = rng.between(1, 4);
    Problem problem;
    problem.seqlen_q = problem.seqlen_k = n;
    problem.head_dim_qk = problem.head_dim_v = d;
    const AbiProblem form(problem, 1);
    attest_loss_args args{};
    args.problem = form.get();
    const auto [schedule, dag] = make([&] { return rng.between(1, 6); }, narrow(n), narrow(d));
    INFO(name << " n " << n << " d " << d << " round " << round);
    const auto inputs =
        inputs_of({{"A1", "A1"}, {"A2", "A2"}, {"A3", "A3"}, {"E", "E"}, {"X", "X"}, {"Y", "Y"}});
    check_legal(dag, pebbling_of(schedule, loss_head(args), dag, inputs), rng);
  }
}

template <class S>
std::pair<S, Dag> with(const S& schedule, Dag dag) {
  return {schedule, std::move(dag)};
}

Dag running(const io::AttentionShape& shape, std::int64_t block) {
  return forward_dag(shape, {io::Softmax::running_maximum, narrow(block), io::OneKeyRow::computed,
                             io::LseWord::output});
}

TEST_CASE("forward schedules are legal pebblings", "[cpu][schedules]") {
  using Shape = io::AttentionShape;
  forward("standard", [](auto tile, const Shape& shape) {
    return with(Standard{tile(), tile(), tile()},
                testing::normalized_forward(shape, Normalization::weights, 1));
  });
  forward("flash1", [](auto tile, const Shape& shape) {
    const Flash1 schedule{tile(), tile()};
    return with(schedule,
                testing::normalized_forward(shape, Normalization::tiles, narrow(schedule.block_k)));
  });
  forward("flash2", [](auto tile, const Shape& shape) {
    const Flash2 schedule{tile(), tile()};
    return with(schedule, running(shape, schedule.block_k));
  });
  forward("flash2_row",
          [](auto tile, const Shape& shape) { return with(Flash2Row{tile()}, running(shape, 1)); });
  forward("column_groups", [](auto tile, const Shape& shape) {
    return with(ColumnGroups{tile(), tile()}, running(shape, 1));
  });
  forward("held_scores", [](auto tile, const Shape& shape) {
    const HeldScores schedule{tile(), tile() * tile()};
    std::vector<std::int32_t> blocks;  // keys of a piece, of each query
    for (std::int64_t i = 0; i < shape.seqlen_q; ++i) {
      const std::int64_t first = i / schedule.block_q * schedule.block_q;
      const std::int64_t queries = std::min(schedule.block_q, shape.seqlen_q - first);
      blocks.push_back(narrow(std::max<std::int64_t>(schedule.held / queries, 1)));
    }
    return with(schedule, testing::factored_forward(shape, blocks));
  });
  forward("rolling_queries", [](auto tile, const Shape& shape) {
    return with(RollingQueries{tile(), tile()}, running(shape, 1));
  });
  forward("split_kv", [](auto tile, const Shape& shape) {
    const SplitKv schedule{tile(), tile(), tile()};
    const std::int64_t tiles = io::tiles(shape.seqlen_k, schedule.block_k);
    const std::int64_t part = io::tiles(tiles, schedule.splits) * schedule.block_k;
    return with(schedule, testing::split_forward(shape, narrow(schedule.block_k), narrow(part)));
  });
  forward("square_tiled, paper", [](auto tile, const Shape& shape) {
    return with(SquareTiled{tile(), SquareTiled::kPaper},
                forward_dag(shape, {io::Softmax::unshifted, 1, io::OneKeyRow::computed,
                                    io::LseWord::none}));
  });
  forward("square_tiled, stable", [](auto tile, const Shape& shape) {
    const SquareTiled schedule{tile(), SquareTiled::kStable};
    return with(schedule,
                testing::normalized_forward(shape, Normalization::stored, narrow(schedule.side)));
  });
  forward("rank1_tiled", [](auto tile, const Shape& shape) {
    const Rank1Tiled schedule{tile(), tile(), tile(), tile()};
    return with(schedule, testing::normalized_forward(shape, Normalization::stored,
                                                      narrow(schedule.block_k)));
  });
  forward("hybrid", [](auto tile, const Shape& shape) {
    return with(Hybrid{tile(), tile(), tile()},
                testing::normalized_forward(shape, Normalization::stored, 1));
  });
}

TEST_CASE("backward schedules are legal pebblings", "[cpu][schedules]") {
  using Shape = io::AttentionShape;
  const auto given = [](const Shape& shape) { return backward_dag(shape, io::Statistics::given); };
  backward("standard_bwd",
           inputs_of({{"Q", "q"}, {"K", "k"}, {"V", "v"}, {"dO", "dO"}, {"P", "p"}}),
           [](auto tile, const Shape& shape) {
             return with(StandardBackward{tile(), tile(), tile()},
                         testing::saved_backward(shape, Saved::weights));
           });
  backward(
      "flash1_bwd",
      inputs_of(
          {{"Q", "q"}, {"K", "k"}, {"V", "v"}, {"O", "O"}, {"dO", "dO"}, {"m", "m"}, {"l", "sum"}}),
      [](auto tile, const Shape& shape) {
        return with(Flash1Backward{tile(), tile()},
                    testing::saved_backward(shape, Saved::max_sums));
      });
  backward("key_stationary", backward_inputs(), [&](auto tile, const Shape& shape) {
    return with(KeyStationary{tile(), tile()}, given(shape));
  });
  backward("two_pass", backward_inputs(), [&](auto tile, const Shape& shape) {
    return with(TwoPass{tile(), tile(), tile(), tile()}, given(shape));
  });
  backward("two_pass_row", backward_inputs(), [&](auto tile, const Shape& shape) {
    return with(TwoPassRow{tile(), tile()}, given(shape));
  });
  backward("held_pairs", backward_inputs(), [&](auto tile, const Shape& shape) {
    return with(HeldPairs{tile(), tile() * tile(), tile(), tile() * tile()}, given(shape));
  });
  backward("rolling_keys", backward_inputs(), [&](auto tile, const Shape& shape) {
    return with(RollingKeys{tile(), tile()}, given(shape));
  });
  backward("rolling_queries_bwd", backward_inputs(), [&](auto tile, const Shape& shape) {
    return with(RollingQueriesBackward{tile(), tile()}, given(shape));
  });
  backward("key_stationary_ds", backward_inputs(), [&](auto tile, const Shape& shape) {
    return with(KeyStationaryDs{tile(), tile(), tile()}, given(shape));
  });
  backward("query_stationary_p", backward_inputs(), [&](auto tile, const Shape& shape) {
    return with(QueryStationaryP{tile(), tile(), tile(), tile()}, given(shape));
  });
  backward("rolling_p", backward_inputs(), [&](auto tile, const Shape& shape) {
    return with(RollingP{tile(), tile(), tile(), tile(), tile(), tile()}, given(shape));
  });
  backward("rank1_tiled_bwd", backward_inputs(), [&](auto tile, const Shape& shape) {
    return with(Rank1TiledBackward{tile(), tile()}, given(shape));
  });
  backward("square_tiled_bwd", backward_inputs(), [&](auto tile, const Shape& shape) {
    return with(SquareTiledBackward{tile()}, given(shape));
  });
}

TEST_CASE("loss schedules are legal pebblings", "[cpu][schedules]") {
  loss("loss_large", [](auto tile, std::int32_t n, std::int32_t d) {
    return with(LossLarge{tile(), tile()}, testing::loss_dag(n, d, LossOrder::through_w, 1));
  });
  loss("loss_large_direct", [](auto tile, std::int32_t n, std::int32_t d) {
    const LossLargeDirect schedule{tile(), tile()};
    return with(schedule, testing::loss_dag(n, d, LossOrder::direct, narrow(schedule.rows)));
  });
  loss("loss_rows", [](auto tile, std::int32_t n, std::int32_t d) {
    return with(LossRows{tile(), tile(), tile()}, testing::loss_dag(n, d, LossOrder::through_w, 1));
  });
  loss("loss_small", [](auto tile, std::int32_t n, std::int32_t d) {
    const LossSmall schedule{tile()};
    return with(schedule, testing::loss_dag(n, d, LossOrder::stored, narrow(schedule.side)));
  });
}

TEST_CASE("schedules that skip masked tiles are legal pebblings", "[cpu][schedules]") {
  using Shape = io::AttentionShape;
  const auto forward_of = [](const char* name, std::int64_t bq, std::int64_t bk,
                             const auto& schedule) {
    check_masked<std::decay_t<decltype(schedule)>, attest_forward_args>(
        name, forward_inputs(), bq, bk, schedule, forward_head,
        [&](const Shape& shape) { return running(shape, bk); });
  };
  forward_of("flash2", 2, 3, Flash2{2, 3});
  forward_of("flash2, rows", 1, 2, Flash2{1, 2});
  forward_of("flash2_row", 2, 1, Flash2Row{2});
  forward_of("column_groups", 2, 1, ColumnGroups{2, 2});
  const auto backward_of = [](const char* name, std::int64_t bq, std::int64_t bk,
                              const auto& schedule) {
    check_masked<std::decay_t<decltype(schedule)>, attest_backward_args>(
        name, backward_inputs(), bq, bk, schedule, backward_head,
        [](const Shape& shape) { return backward_dag(shape, io::Statistics::given); });
  };
  backward_of("key_stationary", 2, 2, KeyStationary{2, 2});
  backward_of("two_pass", 2, 2, TwoPass{2, 2, 2, 2});
  backward_of("two_pass_row", 2, 2, TwoPassRow{2, 2});
}

}  // namespace
}  // namespace attest::schedules
