#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "core/error.hpp"
#include "io/machine/words.hpp"

namespace attest::io {

/// How much fast memory there is, in words (scalars of any width), bytes or both.
struct FastMemory {
  static constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();
  std::int64_t words = kUnlimited;
  std::int64_t bytes = kUnlimited;

  /// Requires: at least 1. Else throws InvalidProblem.  [io/machine/meter_test "capacity"]
  static FastMemory of_words(std::int64_t words);
  static FastMemory of_bytes(std::int64_t bytes);
};

/// A tile that does not fit: `tile 'O' needs 128 words, but 128 of 200 are live`.
struct CapacityExceeded : InvalidProblem {
  using InvalidProblem::InvalidProblem;
};

/// The ledger of one run in the two-level memory model: what was read and written, what is live in
/// fast memory. Fast memory is a stack, because tiles are objects in nested scopes; so a tile that
/// fits by number of words fits in an arena of exactly that size.
class Meter {
 public:
  /// A piece of fast memory.
  struct Piece {
    std::int64_t first = 0;  // its first word
    std::int64_t words = 0;
    std::int64_t bytes = 0;
  };

  explicit Meter(FastMemory capacity) : capacity_(capacity) {}

  /// Takes rows x columns words of `width` bytes each. Throws CapacityExceeded when they do not
  /// fit, naming the tile.  [io/machine/meter_test "a tile that does not fit is refused by name"]
  Piece take(const char* name, std::int64_t rows, std::int64_t columns, std::size_t width);

  /// Gives a piece back. Pieces go in the opposite order they came; another order is remembered and
  /// traffic() throws InternalError.  [io/machine/meter_test "out of order"]
  void release(const Piece& piece) noexcept;

  void read(std::int64_t words, std::size_t width) { reads_ += moved(words, width); }
  void write(std::int64_t words, std::size_t width) { writes_ += moved(words, width); }

  /// Guard: until its death all that follows counts `times` times.
  /// [io/machine/dry_machine_test "repeat"]
  class [[nodiscard]] Repetition {
   public:
    Repetition(Meter& meter, std::int64_t times) : meter_(meter), before_(meter.times_) {
      meter.times_ = meter.times_ * Words(times);
    }
    Repetition(const Repetition&) = delete;
    Repetition& operator=(const Repetition&) = delete;
    ~Repetition() { meter_.times_ = before_; }

   private:
    Meter& meter_;
    Words before_;
  };
  Repetition repeat(std::int64_t times) { return {*this, times}; }

  /// Parallel blocks: each has fast memory of its own, so nothing may be live when one begins, and
  /// what two blocks read is read twice. Throws InternalError when a tile is live.
  /// [io/machine/meter_test "parallel blocks"]
  class [[nodiscard]] Block {
   public:
    explicit Block(Meter& meter);
    Block(const Block&) = delete;
    Block& operator=(const Block&) = delete;
    ~Block();

   private:
    Meter& meter_;
    Words before_;
  };

  /// Parallel blocks begun, and the words the busiest of them moved.
  struct Blocks {
    Words count, busiest_words;
  };

  const FastMemory& capacity() const { return capacity_; }
  std::int64_t live_words() const { return live_.first; }
  const Blocks& blocks() const { return blocks_; }

  /// Words and bytes so far. Throws InternalError when tiles were not released in order.
  Traffic traffic() const;

 private:
  Amount moved(std::int64_t words, std::size_t width) const {
    return times_ * Amount{words, Words(words) * static_cast<std::int64_t>(width)};
  }

  FastMemory capacity_;
  Piece live_;  // first: words live; bytes: bytes live
  Amount reads_, writes_, peak_;
  Words times_ = 1;
  Blocks blocks_;
  bool in_order_ = true;
};

}  // namespace attest::io
