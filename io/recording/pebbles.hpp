#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "io/pebble/game.hpp"
#include "io/recording/word_move.hpp"

namespace attest::io {

/// A recorded run as moves of the pebble game.
struct PebbleTrace {
  std::vector<Move> moves;
  /// Words read and written that hold a constant: they are no vertices, and no move is made.
  std::int64_t constant_reads = 0, constant_writes = 0;
  /// Why the run is none of the computation: "move 17: no word is formed from q[0,0], v[1,0]".
  std::optional<std::string> refusal;
};

/// Which input a word of slow memory holds at the start, or nothing.
using InputName = std::function<std::optional<VertexName>(const SlowWord&)>;

/// Follows the words of a run through places and slow memory and finds for each new word the vertex
/// that the computation forms from the same operands: the recording knows no vertices, the
/// computation no schedule. The function judge() decides whether the moves are legal.
/// [io/recording/pebbles_test]
PebbleTrace as_pebbles(const Dag& dag, const std::vector<WordMove>& moves, const InputName& input);

}  // namespace attest::io
