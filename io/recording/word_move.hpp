#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace attest::io {

/// A word of slow memory: an element of the matrix of that name.
struct SlowWord {
  std::string matrix;
  std::int64_t row = 0, column = 0;

  friend auto operator<=>(const SlowWord&, const SlowWord&) = default;
};

/// One step of a run, a word at a time; `place` is a word of fast memory.
struct WordMove {
  enum class Kind : std::uint8_t {
    load,        // the slow word into the place
    store,       // the place's word to the slow word
    clear,       // a constant into the place: a sum of nothing, the maximum of nothing
    form,        // a new word from the operands into the place
    accumulate,  // the place's word with the operands; over a constant, what they alone give
    rescale,     // the place's word with the operands; a constant stays
    copy,        // the operand's word into the place
    free,        // the place is given up
  };
  Kind kind = Kind::free;
  std::int64_t place = 0;
  SlowWord slow;
  std::vector<std::int64_t> operands;

  friend bool operator==(const WordMove&, const WordMove&) = default;
};

/// Takes the steps of a run, one after the other.
class WordMoveSink {
 public:
  virtual ~WordMoveSink() = default;
  virtual void take(const WordMove& move) = 0;
};

/// Keeps them.
class WordMoveList : public WordMoveSink {
 public:
  explicit WordMoveList(std::vector<WordMove>& moves) : moves_(moves) {}
  void take(const WordMove& move) override { moves_.push_back(move); }

 private:
  std::vector<WordMove>& moves_;
};

}  // namespace attest::io
