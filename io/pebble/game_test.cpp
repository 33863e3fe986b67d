#include "io/pebble/game.hpp"

#include <algorithm>
#include <map>

#include "core/error.hpp"
#include "core/testing/catch.hpp"
#include "io/pebble/loss_dag.hpp"
#include "io/pebble/testing/depend.hpp"
#include "io/pebble/testing/trace.hpp"

namespace attest::io {
namespace {

std::string refusal(const Game& game) { return game.refusal.value_or("legal"); }

// Two inputs, their product, an output that adds the first input to it.
struct Toy {
  Dag dag;
  Vertex a = dag.input("a", {0}), b = dag.input("b", {0});
  Vertex c = dag.formed("c", {0}, {a, b}), d = dag.formed("d", {0}, {a, c});
  std::vector<Move> moves{{Rule::load, a}, {Rule::load, b},    {Rule::compute, c},
                          {Rule::free, b}, {Rule::compute, d}, {Rule::store, d},
                          {Rule::free, a}, {Rule::free, c},    {Rule::free, d}};

  Toy() { dag.output(d); }

  std::string after(const std::vector<Move>& changed) const {
    return refusal(play(dag, changed, 3));
  }
};

TEST_CASE("a legal game is counted", "[io][pebble]") {
  const Toy toy;
  const Game game = play(toy.dag, toy.moves, 3);
  CHECK(game.legal());
  CHECK(game.reads == 2);
  CHECK(game.writes == 1);
  CHECK(game.peak == 3);
}

TEST_CASE("every rule refuses", "[io][pebble]") {
  const Toy toy;
  CHECK(refusal(play(toy.dag, toy.moves, 2)) ==
        "move 2, computation of c[0]: all 2 red pebbles are in use");
  CHECK(toy.after({{Rule::load, toy.c}}) == "move 0, load of c[0]: slow memory does not hold it");
  CHECK(toy.after({{Rule::load, toy.a}, {Rule::load, toy.a}}) ==
        "move 1, load of a[0]: fast memory holds it already");
  CHECK(toy.after({{Rule::store, toy.a}}) == "move 0, store of a[0]: fast memory does not hold it");
  CHECK(toy.after({{Rule::free, toy.a}}) ==
        "move 0, release of a[0]: fast memory does not hold it");
  CHECK(toy.after({{Rule::compute, toy.a}}) == "move 0, computation of a[0]: it is an input");
  CHECK(toy.after({{Rule::load, toy.a}, {Rule::compute, toy.c}}) ==
        "move 1, computation of c[0]: its operand b[0] is not in fast memory");
  std::vector<Move> moves = toy.moves;
  moves.insert(moves.begin() + 3, {Rule::compute, toy.c});
  CHECK(toy.after(moves) == "move 3, computation of c[0]: fast memory holds it already");
  moves = toy.moves;
  moves.erase(moves.begin() + 5);
  CHECK(toy.after(moves) == "at the end: output d[0] was not stored");
  moves = toy.moves;
  moves.pop_back();
  CHECK(toy.after(moves) == "at the end: d[0] is left in fast memory");
  CHECK(refusal(judge(toy.dag, toy.moves, {1, 1, 3})) ==
        "the run claims 1 reads and 1 writes; it makes 2 and 1");
  CHECK(judge(toy.dag, toy.moves, {2, 1, 3}).legal());
  CHECK_THROWS_AS(play(toy.dag, toy.moves, 0), InvalidProblem);
  CHECK_THROWS_AS(play(toy.dag, {{Rule::load, 4}}, 3), InvalidProblem);
  CHECK_THROWS_AS(play(toy.dag, {{Rule::load, -1}}, 3), InvalidProblem);
}

TEST_CASE("rows streamed by hand are a legal game with the words of the formula", "[io][pebble]") {
  Rng rng(7);
  for (int trial = 0; trial < 100; ++trial) {
    const auto size = [&] { return static_cast<std::int32_t>(rng.between(1, 6)); };
    const AttentionShape shape{size(), size(), size(), size(), {}};
    const std::int32_t block = size();
    const Dag dag = forward_dag(shape, {Softmax::unshifted, 1});
    const std::int32_t q = shape.seqlen_q, k = shape.seqlen_k;
    const std::int32_t both = shape.head_dim_qk + shape.head_dim_v;
    const std::int32_t passes = (q + block - 1) / block;
    // One pebble more than words: a multiply-add's result is placed before its operand goes.
    const std::int32_t red_pebbles = std::min(block, q) * (both + 2) + 2;
    const Game game =
        judge(dag, testing::row_streamed_trace(dag, shape, block),
              {q * shape.head_dim_qk + passes * k * both, q * shape.head_dim_v, red_pebbles});
    INFO(q << ' ' << k << ' ' << shape.head_dim_qk << ' ' << shape.head_dim_v << ' ' << block);
    CHECK(refusal(game) == "legal");
  }
}

// A second judge, which knows the history of every word instead of the state of the board.
bool legal_by_history(const Dag& dag, const std::vector<Move>& moves, std::int64_t red_pebbles) {
  struct Span {
    std::size_t begin, end;
  };
  std::map<Vertex, std::vector<Span>> held;
  std::map<Vertex, std::size_t> first_store;
  const std::size_t open = moves.size();
  for (std::size_t time = 0; time < moves.size(); ++time) {
    const auto [rule, vertex] = moves[time];
    std::vector<Span>& spans = held[vertex];
    const bool in_fast = !spans.empty() && spans.back().end == open;
    if (rule == Rule::load || rule == Rule::compute) {
      if (in_fast) return false;
      if (rule == Rule::load && !dag.is_input(vertex) && first_store.count(vertex) == 0) {
        return false;
      }
      if (rule == Rule::compute && dag.is_input(vertex)) return false;
      spans.push_back({time, open});
    } else {
      if (!in_fast) return false;
      if (rule == Rule::store) first_store.emplace(vertex, time);
      if (rule == Rule::free) spans.back().end = time;
    }
  }
  std::vector<std::int64_t> change(moves.size() + 1);
  for (const auto& [vertex, spans] : held) {
    for (const Span& span : spans) {
      if (span.end == open) return false;
      ++change[span.begin];
      --change[span.end];
    }
  }
  std::int64_t count = 0;
  for (const std::int64_t difference : change) {
    count += difference;
    if (count > red_pebbles) return false;
  }
  for (std::size_t time = 0; time < moves.size(); ++time) {
    if (moves[time].rule != Rule::compute) continue;
    for (const Vertex operand : dag.operands(moves[time].vertex)) {
      const auto& spans = held[operand];
      if (std::none_of(spans.begin(), spans.end(),
                       [&](const Span& span) { return span.begin < time && time < span.end; })) {
        return false;
      }
    }
  }
  return std::all_of(dag.outputs().begin(), dag.outputs().end(),
                     [&](Vertex output) { return first_store.count(output) > 0; });
}

TEST_CASE("mutated traces are refused", "[io][pebble]") {
  std::vector<Dag> dags;
  const AttentionShape causal{3, 3, 2, 2, {1, 0, 0, 1, 1, 0, 1, 1, 1}};
  for (const Softmax softmax :
       {Softmax::folded, Softmax::unshifted, Softmax::final_maximum, Softmax::running_maximum}) {
    dags.push_back(
        forward_dag({3, 4, 2, 2, {}}, {softmax, 2, OneKeyRow::computed, LseWord::output}));
    dags.push_back(forward_dag(causal, {softmax, 1, OneKeyRow::copied}));
  }
  dags.push_back(backward_dag({3, 3, 2, 2, {}}, Statistics::given));
  dags.push_back(backward_dag(causal, Statistics::recomputed));
  dags.push_back(loss_gradient_dag(3, 2, LossProduct::through_w));
  dags.push_back(loss_gradient_dag(3, 2, LossProduct::direct));

  Rng rng(11);
  int refused_swaps = 0, legal_swaps = 0, dependent_swaps = 0;
  for (const Dag& dag : dags) {
    for (int trial = 0; trial < 25; ++trial) {
      const std::int64_t red_pebbles = rng.between(6, 24);
      const std::vector<Move> moves = testing::random_trace(dag, red_pebbles, rng);
      Claim claim{0, 0, red_pebbles};
      for (const Move& move : moves) {
        claim.reads += move.rule == Rule::load ? 1 : 0;
        claim.writes += move.rule == Rule::store ? 1 : 0;
      }
      REQUIRE(refusal(judge(dag, moves, claim)) == "legal");
      REQUIRE(legal_by_history(dag, moves, red_pebbles));
      const auto position = [&](std::size_t past_end) {
        return rng.between(0, static_cast<std::int64_t>(past_end) - 1);
      };
      for (int mutation = 0; mutation < 20; ++mutation) {
        std::vector<Move> changed = moves;
        changed.erase(changed.begin() + position(moves.size()));
        CHECK_FALSE(judge(dag, changed, claim).legal());

        changed = moves;
        const Move again = changed[static_cast<std::size_t>(position(moves.size()))];
        changed.insert(changed.begin() + position(moves.size() + 1), again);
        CHECK_FALSE(judge(dag, changed, claim).legal());

        changed = moves;
        std::iter_swap(changed.begin() + position(moves.size()),
                       changed.begin() + position(moves.size()));
        const bool legal = judge(dag, changed, claim).legal();
        CHECK(legal == legal_by_history(dag, changed, red_pebbles));
        (legal ? legal_swaps : refused_swaps) += changed != moves ? 1 : 0;

        changed = moves;
        const auto first = static_cast<std::size_t>(position(moves.size() - 1));
        if (moves[first] == moves[first + 1] ||
            !testing::depend(dag, moves[first], moves[first + 1])) {
          continue;
        }
        std::swap(changed[first], changed[first + 1]);
        CHECK_FALSE(judge(dag, changed, claim).legal());
        ++dependent_swaps;
      }
    }
  }
  // Moves that do not depend on one another may be swapped: that trace is legal too. Most are not.
  CHECK(refused_swaps > 10 * legal_swaps);
  CHECK(legal_swaps > 0);
  CHECK(dependent_swaps > 1000);
}

}  // namespace
}  // namespace attest::io
