#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "io/pebble/dag.hpp"

/// The red-blue pebble game (Hong and Kung 1981): a red pebble is a word in fast memory, a blue one
/// a word in slow memory. The judge knows the computation and the rules, nothing of schedules.
namespace attest::io {

enum class Rule : std::uint8_t {
  load,     // R1: red on a vertex that has blue
  store,    // R2: blue on a vertex that has red
  compute,  // R3: red on a vertex whose operands all have red
  free,     // R4: takes red away
};

struct Move {
  Rule rule = Rule::load;
  Vertex vertex = 0;

  friend bool operator==(const Move&, const Move&) = default;
};

/// Claims of a run about itself.
struct Claim {
  std::int64_t reads = 0, writes = 0;
  std::int64_t red_pebbles = 0;  // fast_words, one more where results replace an operand in place
};

/// Findings of the judge.
struct Game {
  std::int64_t reads = 0, writes = 0, peak = 0;
  std::optional<std::string> refusal;  // "move 17, load of k[0,1]: it is in fast memory already"

  bool legal() const { return !refusal; }
};

/// Plays the moves, from blue pebbles on the inputs only, and stops at the first illegal one.
/// Refused: a load of a word that slow memory lacks; a store or free of a word that fast memory
/// lacks; a computation without its operands, or of an input; a load or computation of a word that
/// fast memory holds; more red pebbles than there are; at the end an output that was not stored, or
/// a red pebble left.  [io/pebble/game_test]
///
/// Requires: red_pebbles at least 1, vertices of the computation. Else throws InvalidProblem.
/// Cost:     linear in moves and their operands.
Game play(const Dag& dag, const std::vector<Move>& moves, std::int64_t red_pebbles);

/// play, and refuses also when reads or writes are not the claimed ones.
/// [io/pebble/game_test "mutated traces"]
Game judge(const Dag& dag, const std::vector<Move>& moves, const Claim& claim);

}  // namespace attest::io
