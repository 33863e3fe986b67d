#include "io/pebble/game.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace attest::io {
namespace {

const char* verb(Rule rule) {
  switch (rule) {
    case Rule::load:
      return "load";
    case Rule::store:
      return "store";
    case Rule::compute:
      return "computation";
    case Rule::free:
      return "release";
  }
  throw InternalError("Rule out of range");
}

class Board {
 public:
  Board(const Dag& dag, std::int64_t red_pebbles)
      : dag_(dag),
        red_pebbles_(red_pebbles),
        red_(static_cast<std::size_t>(dag.size())),
        blue_(static_cast<std::size_t>(dag.size())) {
    for (Vertex vertex = 0; vertex < dag.size(); ++vertex) blue_[at(vertex)] = dag.is_input(vertex);
  }

  // Makes the move, or says why not.
  std::string make(const Move& move) {
    switch (move.rule) {
      case Rule::load:
        if (!blue_[at(move.vertex)]) return "slow memory does not hold it";
        ++game_.reads;
        return place(move.vertex);
      case Rule::store:
        if (!red_[at(move.vertex)]) return "fast memory does not hold it";
        blue_[at(move.vertex)] = true;
        ++game_.writes;
        return "";
      case Rule::compute:
        return compute(move.vertex);
      case Rule::free:
        if (!red_[at(move.vertex)]) return "fast memory does not hold it";
        red_[at(move.vertex)] = false;
        --held_;
        return "";
    }
    throw InternalError("Rule out of range");
  }

  // Why the position is no end.
  std::string unfinished() const {
    for (const Vertex output : dag_.outputs()) {
      if (!blue_[at(output)]) return "output " + dag_.name(output).to_string() + " was not stored";
    }
    if (held_ == 0) return "";
    const auto left = std::find(red_.begin(), red_.end(), true);
    return dag_.name(static_cast<Vertex>(left - red_.begin())).to_string() +
           " is left in fast memory";
  }

  Game& game() { return game_; }

 private:
  static std::size_t at(Vertex vertex) { return static_cast<std::size_t>(vertex); }

  std::string compute(Vertex vertex) {
    if (dag_.is_input(vertex)) return "it is an input";
    for (const Vertex operand : dag_.operands(vertex)) {
      if (!red_[at(operand)]) {
        return "its operand " + dag_.name(operand).to_string() + " is not in fast memory";
      }
    }
    return place(vertex);
  }

  std::string place(Vertex vertex) {
    if (red_[at(vertex)]) return "fast memory holds it already";
    if (held_ == red_pebbles_) {
      return "all " + std::to_string(red_pebbles_) + " red pebbles are in use";
    }
    red_[at(vertex)] = true;
    game_.peak = std::max(game_.peak, ++held_);
    return "";
  }

  const Dag& dag_;
  const std::int64_t red_pebbles_;
  std::vector<bool> red_, blue_;
  std::int64_t held_ = 0;
  Game game_;
};

}  // namespace

Game play(const Dag& dag, const std::vector<Move>& moves, std::int64_t red_pebbles) {
  if (red_pebbles < 1) {
    throw InvalidProblem("red_pebbles is " + std::to_string(red_pebbles) +
                         "; it must be at least 1");
  }
  Board board(dag, red_pebbles);
  for (std::size_t index = 0; index < moves.size(); ++index) {
    const Move& move = moves[index];
    if (move.vertex < 0 || move.vertex >= dag.size()) {
      throw InvalidProblem("move " + std::to_string(index) + ": vertex " +
                           std::to_string(move.vertex) + " of " + std::to_string(dag.size()));
    }
    const std::string fault = board.make(move);
    if (!fault.empty()) {
      board.game().refusal = "move " + std::to_string(index) + ", " + verb(move.rule) + " of " +
                             dag.name(move.vertex).to_string() + ": " + fault;
      return board.game();
    }
  }
  const std::string fault = board.unfinished();
  if (!fault.empty()) board.game().refusal = "at the end: " + fault;
  return board.game();
}

Game judge(const Dag& dag, const std::vector<Move>& moves, const Claim& claim) {
  Game game = play(dag, moves, claim.red_pebbles);
  if (game.legal() && (game.reads != claim.reads || game.writes != claim.writes)) {
    game.refusal = "the run claims " + std::to_string(claim.reads) + " reads and " +
                   std::to_string(claim.writes) + " writes; it makes " +
                   std::to_string(game.reads) + " and " + std::to_string(game.writes);
  }
  return game;
}

}  // namespace attest::io
