#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "io/machine/metered_machine.hpp"
#include "io/recording/word_move.hpp"

namespace attest::io {

class RecordingBackend;

/// Tile or stream as a recorded operation sees it.
class RecordedTile {
 public:
  std::int64_t rows() const { return held_.rows; }
  std::int64_t columns() const { return held_.columns; }

  /// Returns the place of an element; of a stream, loads the word into the stream's one place
  /// first.
  std::int64_t word(std::int64_t i, std::int64_t j) const;

  /// Lets the word at a place leave through a stream out, as element (i, j).
  void send(std::int64_t i, std::int64_t j, std::int64_t place) const;

 private:
  friend class RecordingBackend;
  RecordedTile(RecordingBackend& backend, const Held& held) : backend_(&backend), held_(held) {}

  RecordingBackend* backend_;
  Held held_;
};

/// Writes down every word that a schedule moves or forms. An operation is recorded by
/// `trace(recorder, operation, tiles…)`, found beside it, in terms of clear, form, accumulate,
/// rescale and copy.
class RecordingBackend {
 public:
  static constexpr Data kData = Data::moved;

  RecordingBackend(FastMemory, WordMoveSink& sink) : sink_(&sink) {}
  RecordingBackend(FastMemory, std::vector<WordMove>& moves)
      : list_(std::make_unique<WordMoveList>(moves)), sink_(list_.get()) {}

  void undefined(const Held&) {}
  void load(const Held& tile, const SlowMatrix& block);
  void store(const Held& tile, const MutableSlowMatrix& block);
  void release(const Held& tile);
  void begin_stream(Held& stream, const SlowMatrix& block);
  void end_stream(const Held& stream);
  void begin_stream_out(Held& stream, const MutableSlowMatrix& block);
  void end_stream_out(const Held& stream, const MutableSlowMatrix&) { end_stream(stream); }
  MutableSlowMatrix workspace(const char* name, std::int64_t rows, std::int64_t columns) {
    return {name, rows, columns, DType::f32, nullptr, columns};
  }

  RecordedTile view(const Held& held) { return {*this, held}; }
  RecordedTile const_view(const Held& held) { return {*this, held}; }

  template <class Operation, class... Tiles>
  void compute(const Operation& operation, const Tiles&... tiles) {
    trace(*this, operation, tiles...);
  }

  void clear(std::int64_t place) { add(WordMove::Kind::clear, place, {}); }
  void form(std::int64_t place, std::vector<std::int64_t> operands) {
    add(WordMove::Kind::form, place, std::move(operands));
  }
  void accumulate(std::int64_t place, std::vector<std::int64_t> operands) {
    add(WordMove::Kind::accumulate, place, std::move(operands));
  }
  void rescale(std::int64_t place, std::vector<std::int64_t> operands) {
    add(WordMove::Kind::rescale, place, std::move(operands));
  }
  void copy(std::int64_t place, std::int64_t from) { add(WordMove::Kind::copy, place, {from}); }

  /// Throws InternalError when a stream's words were not each used exactly once: the words counted
  /// are then not the words moved.
  void require_streams_used() const;

 private:
  friend class RecordedTile;

  // A live stream: where its words lie, and how often each was used.
  struct Wire {
    SlowMatrix block;
    std::vector<int> uses;
  };

  void add(WordMove::Kind kind, std::int64_t place, std::vector<std::int64_t> operands) {
    sink_->take({kind, place, {}, std::move(operands)});
  }
  void transfer(WordMove::Kind kind, std::int64_t place, const SlowWord& word) {
    sink_->take({kind, place, word, {}});
  }
  static SlowWord word_of(const SlowMatrix& block, std::int64_t i, std::int64_t j);
  SlowWord use(const Held& stream, std::int64_t i, std::int64_t j);

  std::unique_ptr<WordMoveList> list_;
  WordMoveSink* sink_;
  std::vector<Wire> wires_;
  std::string misused_;  // the first stream that was
};

/// Runs a schedule without data and records it word by word.
/// [io/recording/recording_machine_test]
using RecordingMachine = MeteredMachine<RecordingBackend>;

}  // namespace attest::io
