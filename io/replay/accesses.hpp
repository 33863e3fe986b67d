#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "io/recording/word_move.hpp"

/// Recorded runs as a cache sees them: the addresses that operations touch, in their order. Nobody
/// says what is to be held; the replacement policy has to guess.
namespace attest::io {

/// Use of a word by an access.
enum class Use : std::uint8_t {
  read,    // needs what is there
  write,   // puts something new there
  update,  // both
};

struct Access {
  std::uint32_t word = 0;  // address, counted in words
  Use use = Use::read;

  friend bool operator==(const Access&, const Access&) = default;
};

/// Lines have at most this many words; matrices begin at its multiples.
constexpr std::int64_t kLongestLine = 64;

/// The accesses of a run. Matrices lie row-major, one after the other, scratch last.
struct AccessTrace {
  struct Region {
    std::string matrix;
    std::int64_t first = 0, rows = 0, columns = 0;
  };

  std::vector<Access> accesses;
  std::vector<Region> regions;
  std::int64_t scratch = 0;  // the first address of scratch
  std::int64_t words = 0;    // addresses are below
};

/// From moves to accesses. There are no tiles to copy to: a word that is loaded is used where it
/// lies in slow memory, a word that is formed lies where it is stored in the end, and one that
/// never is stored, or while its place in slow memory is still needed, lies in scratch, at the
/// number of its place in fast memory. So a cache that holds what the schedule holds, and no more,
/// fetches what the schedule reads.  [io/replay/accesses_test, schedules/replay_test]
class AccessBuilder : public WordMoveSink {
 public:
  /// Throws InvalidProblem for more than `most` accesses.
  explicit AccessBuilder(std::size_t most) : most_(most) {}

  void take(const WordMove& move) override;

  /// Throws InvalidProblem when addresses do not fit in 32 bits.
  AccessTrace finish() &&;

 private:
  // Content of a place from a load, or from being formed anew, until it is something else.
  struct Variable {
    std::int64_t slow = -1;  // the word of slow memory it lies in; -1: scratch
    std::int64_t place = 0;  // its place in fast memory
    std::size_t born = 0;    // the number of accesses before it
  };
  // A place of fast memory and what it holds.
  struct Holder {
    std::int64_t variable = -1;
    enum class State : std::uint8_t { same_as_slow, formed } state = State::formed;
  };

  Holder& holder(std::int64_t place);
  std::int64_t number_of(const SlowWord& word);
  std::int64_t new_variable(std::int64_t place, std::int64_t slow);
  void emit(std::int64_t variable, Use use);
  void read(std::int64_t place);
  void form_anew(std::int64_t place);
  void update(std::int64_t place);
  void store(std::int64_t place, const SlowWord& word);

  std::size_t most_;
  std::vector<Holder> places_;
  std::vector<Variable> variables_;
  std::vector<Access> accesses_;  // of variables until finish()
  std::map<std::string, std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t>> numbers_;
  std::vector<SlowWord> slow_;
  std::vector<std::size_t> last_access_;  // of each slow word, under its own name
};

}  // namespace attest::io
