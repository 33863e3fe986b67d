#include "io/recording/trace_text.hpp"

#include <sstream>

#include "core/error.hpp"
#include "core/testing/catch.hpp"
#include "io/recording/recording_machine.hpp"
#include "io/testing/toy.hpp"

namespace attest::io {
namespace {

TEST_CASE("a recording as text is the recording", "[io]") {
  std::vector<WordMove> moves;
  RecordingMachine machine(FastMemory{}, moves);
  testing::matrix_vector(machine, {"A", 5, 3, DType::f32, {nullptr, 3}},
                         {"x", 3, 1, DType::f32, {nullptr, 1}}, {"y", 5, 1, DType::f32, nullptr, 1},
                         2);
  std::ostringstream text;
  WordMoveWriter writer(text);
  for (const WordMove& move : moves) writer.take(move);
  std::istringstream lines(text.str());
  std::vector<WordMove> read;
  for (std::string line; std::getline(lines, line);) read.push_back(parse_word_move(line));
  CHECK(read == moves);
}

TEST_CASE("moves as text", "[io]") {
  for (const std::string line : {"load 3 Q 0 17", "store 0 LSE 5 0", "clear 4", "form 4 4 9",
                                 "accumulate 2 0 1", "rescale 2 7 8", "copy 1 0", "free 12"}) {
    CHECK(to_text(parse_word_move(line)) == line);
  }
  for (const std::string line :
       {"", "load", "load 3", "load 3 Q 0", "load 3 Q 0 -1", "load 3  0 1", "load 3 Q 0 1 2",
        "clear", "clear x", "clear 1 2", "copy 1", "copy 1 2 3", "form 1", "free 1 ", "move 1"}) {
    INFO(line);
    CHECK_THROWS_AS(parse_word_move(line), InvalidProblem);
  }
}

}  // namespace
}  // namespace attest::io
