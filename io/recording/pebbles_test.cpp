#include "io/recording/pebbles.hpp"

#include "core/testing/catch.hpp"
#include "io/recording/recording_machine.hpp"
#include "io/testing/toy.hpp"

namespace attest::io {
namespace {

// y_i = sum over j of A_ij x_j as chains.
Dag matrix_vector_dag(std::int32_t rows, std::int32_t columns) {
  Dag dag;
  std::vector<Vertex> x;
  x.reserve(static_cast<std::size_t>(columns));
  for (std::int32_t j = 0; j < columns; ++j) x.push_back(dag.input("x", {j}));
  for (std::int32_t i = 0; i < rows; ++i) {
    std::vector<Vertex> sum;
    for (std::int32_t j = 0; j < columns; ++j) {
      std::vector<Vertex> operands{dag.input("a", {i, j}), x[static_cast<std::size_t>(j)]};
      if (!sum.empty()) operands.push_back(sum.back());
      sum.push_back(dag.formed("y", {i, j}, operands));
    }
    dag.output(sum.back());
  }
  return dag;
}

std::optional<VertexName> input(const SlowWord& word) {
  const auto index = [](std::int64_t value) { return static_cast<std::int32_t>(value); };
  if (word.matrix == "A") return VertexName{"a", {index(word.row), index(word.column)}};
  if (word.matrix == "x") return VertexName{"x", {index(word.row)}};
  return std::nullopt;
}

// Lists of braced moves are uninitialized to g++ 12.
WordMove word_move(WordMove::Kind kind, std::int64_t place, SlowWord slow,
                   std::vector<std::int64_t> operands) {
  WordMove move;
  move.kind = kind;
  move.place = place;
  move.slow = std::move(slow);
  move.operands = std::move(operands);
  return move;
}

struct Recorded {
  std::vector<WordMove> moves;
  Traffic traffic;
};

Recorded record(std::int64_t block, testing::Mistake mistake = testing::Mistake::none) {
  Recorded recorded;
  RecordingMachine machine(FastMemory{}, recorded.moves);
  testing::matrix_vector(machine, {"A", 5, 3, DType::f32, {nullptr, 3}},
                         {"x", 3, 1, DType::f32, {nullptr, 1}}, {"y", 5, 1, DType::f32, nullptr, 1},
                         block, mistake);
  recorded.traffic = machine.traffic();
  return recorded;
}

Claim claim(const Traffic& traffic) {
  return {traffic.reads.words.value(), traffic.writes.words.value(),
          traffic.peak.words.value() + 1};
}

TEST_CASE("a recorded run is a legal pebbling with the counted words", "[io]") {
  const Dag dag = matrix_vector_dag(5, 3);
  for (const std::int64_t block : {1, 2, 3, 8}) {
    const Recorded recorded = record(block);
    const PebbleTrace pebbles = as_pebbles(dag, recorded.moves, input);
    REQUIRE_FALSE(pebbles.refusal);
    const Game game = judge(dag, pebbles.moves, claim(recorded.traffic));
    INFO(game.refusal.value_or("legal"));
    CHECK(game.legal());
    CHECK(game.peak == recorded.traffic.peak.words.value() + 1);  // results form beside the old sum
  }
}

TEST_CASE("careless runs are no pebblings", "[io]") {
  const Dag dag = matrix_vector_dag(5, 3);
  const Recorded unstored = record(2, testing::Mistake::forgets_store);
  const PebbleTrace pebbles = as_pebbles(dag, unstored.moves, input);
  REQUIRE_FALSE(pebbles.refusal);
  CHECK_FALSE(judge(dag, pebbles.moves, claim(unstored.traffic)).legal());
  const PebbleTrace undefined =
      as_pebbles(dag, record(2, testing::Mistake::forgets_zero).moves, input);
  REQUIRE(undefined.refusal);
  CHECK(undefined.refusal->find("uses a word that nothing wrote") != std::string::npos);
  // Loads what fast memory holds already.
  const Recorded twice = record(2, testing::Mistake::keeps_row);
  CHECK_FALSE(judge(dag, as_pebbles(dag, twice.moves, input).moves, claim(twice.traffic)).legal());
  // Another computation.
  const PebbleTrace other = as_pebbles(matrix_vector_dag(5, 4), record(2).moves, input);
  REQUIRE_FALSE(other.refusal);
  CHECK_FALSE(judge(matrix_vector_dag(5, 4), other.moves, claim(record(2).traffic)).legal());
}

TEST_CASE("what the computation does not form is named", "[io]") {
  const Dag dag = matrix_vector_dag(2, 2);
  using Kind = WordMove::Kind;
  const std::vector<WordMove> moves{
      word_move(Kind::load, 0, {"A", 0, 0}, {}), word_move(Kind::load, 1, {"x", 1, 0}, {}),
      word_move(Kind::clear, 2, {}, {}), word_move(Kind::accumulate, 2, {}, {0, 1})};
  CHECK(as_pebbles(dag, moves, input).refusal ==
        "move 3: no word of the computation is formed from x[1] a[0,0]");
  CHECK(as_pebbles(dag, {word_move(Kind::load, 0, {"y", 1, 0}, {})}, input).refusal ==
        "move 0: reads y[1,0], which nothing wrote");
  CHECK(as_pebbles(dag, {word_move(Kind::store, 0, {"y", 1, 0}, {})}, input).refusal ==
        "move 0: stores to y[1,0] what nothing wrote");
}

}  // namespace
}  // namespace attest::io
