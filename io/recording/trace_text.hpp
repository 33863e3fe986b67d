#pragma once

#include <iosfwd>
#include <string>
#include <string_view>

#include "io/recording/word_move.hpp"

/// Recordings as text, one move to a line. A place is the number of a word of fast memory.
///
///   load PLACE MATRIX ROW COLUMN     the word of slow memory into the place
///   store PLACE MATRIX ROW COLUMN    the place's word to slow memory
///   clear PLACE                      a constant into the place
///   form PLACE OPERAND…              a new word from the words at the operands' places
///   accumulate PLACE OPERAND…        the place's word with the operands
///   rescale PLACE OPERAND…           the place's word with the operands; a constant stays
///   copy PLACE OPERAND               the operand's word
///   free PLACE                       the place is given up
namespace attest::io {

/// A line of the trace, without its end.
std::string to_text(const WordMove& move);

/// The move of a line. Throws InvalidProblem for anything that to_text does not give.
/// [io/recording/trace_text_test]
WordMove parse_word_move(std::string_view line);

/// Writes each move as a line.
class WordMoveWriter : public WordMoveSink {
 public:
  explicit WordMoveWriter(std::ostream& out) : out_(out) {}
  void take(const WordMove& move) override;

 private:
  std::ostream& out_;
};

}  // namespace attest::io
