#include "io/recording/recording_machine.hpp"

#include <set>

#include "core/testing/catch.hpp"
#include "io/testing/toy.hpp"

namespace attest::io {

static_assert(Machine<RecordingMachine>);

namespace {

SlowMatrix nothing(const char* name, std::int64_t rows, std::int64_t columns) {
  return {name, rows, columns, DType::f32, {nullptr, columns}};
}
MutableSlowMatrix result(std::int64_t rows) { return {"y", rows, 1, DType::f32, nullptr, 1}; }

std::int64_t count(const std::vector<WordMove>& moves, WordMove::Kind kind) {
  std::int64_t found = 0;
  for (const WordMove& move : moves) found += move.kind == kind ? 1 : 0;
  return found;
}

TEST_CASE("a recording has the words that are counted", "[io]") {
  for (const std::int64_t block : {1, 2, 4, 9}) {
    std::vector<WordMove> moves;
    RecordingMachine machine(FastMemory{}, moves);
    testing::matrix_vector(machine, nothing("A", 5, 3), nothing("x", 3, 1), result(5), block);
    testing::matrix_vector_streamed(machine, nothing("A", 5, 3), nothing("x", 3, 1), result(5));
    CHECK_NOTHROW(machine.backend().require_streams_used());
    const Traffic traffic = machine.traffic();
    CHECK(count(moves, WordMove::Kind::load) == traffic.reads.words.value());
    CHECK(count(moves, WordMove::Kind::store) == traffic.writes.words.value());
    CHECK(count(moves, WordMove::Kind::accumulate) == 2 * 5 * 3);
    std::int64_t last = 0;
    for (const WordMove& move : moves) last = std::max(last, move.place);
    CHECK(last + 1 == traffic.peak.words.value());
  }
}

TEST_CASE("the words of a block have their names in the whole matrix", "[io]") {
  std::vector<WordMove> moves;
  RecordingMachine machine(FastMemory{}, moves);
  { const auto tile = machine.load(nothing("A", 9, 9).block({2, 4}, {5, 8}).block({1, 2}), "A"); }
  REQUIRE(moves.size() == 6);
  CHECK(moves[0].slow == SlowWord{"A", 3, 5});
  CHECK(moves[2].slow == SlowWord{"A", 3, 7});
  CHECK(moves[5].kind == WordMove::Kind::free);
}

// Uses only the first word of its stream.
struct Lazy {};
template <class Recorder, class Tile, class Stream>
void trace(Recorder& recorder, const Lazy&, const Tile& tile, const Stream& stream) {
  recorder.accumulate(tile.word(0, 0), {stream.word(0, 0)});
}

TEST_CASE("words that are paid for and not used are noticed", "[io]") {
  std::vector<WordMove> moves;
  RecordingMachine machine(FastMemory{}, moves);
  {
    auto tile = machine.scratch(1, 1, "t");
    const auto stream = machine.stream(nothing("x", 2, 1), "x");
    machine.compute(Lazy{}, tile, stream);
  }
  CHECK_THROWS_WITH(machine.backend().require_streams_used(),
                    "stream 'x': an operation did not use each word once");
}

}  // namespace
}  // namespace attest::io
