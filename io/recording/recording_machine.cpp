#include "io/recording/recording_machine.hpp"

#include <algorithm>

namespace attest::io {

std::int64_t RecordedTile::word(std::int64_t i, std::int64_t j) const {
  if (held_.stream < 0) return held_.piece.first + i * held_.columns + j;
  const SlowWord word = backend_->use(held_, i, j);
  backend_->transfer(WordMove::Kind::load, held_.piece.first, word);
  return held_.piece.first;
}

void RecordedTile::send(std::int64_t i, std::int64_t j, std::int64_t place) const {
  backend_->transfer(WordMove::Kind::store, place, backend_->use(held_, i, j));
}

SlowWord RecordingBackend::word_of(const SlowMatrix& block, std::int64_t i, std::int64_t j) {
  return {block.name(), SlowAccess::rows_of(block).begin + i,
          SlowAccess::columns_of(block).begin + j};
}

SlowWord RecordingBackend::use(const Held& stream, std::int64_t i, std::int64_t j) {
  Wire& wire = wires_[static_cast<std::size_t>(stream.stream)];
  ++wire.uses[static_cast<std::size_t>(i * stream.columns + j)];
  return word_of(wire.block, i, j);
}

void RecordingBackend::load(const Held& tile, const SlowMatrix& block) {
  for (std::int64_t i = 0; i < tile.rows; ++i) {
    for (std::int64_t j = 0; j < tile.columns; ++j) {
      transfer(WordMove::Kind::load, view(tile).word(i, j), word_of(block, i, j));
    }
  }
}

void RecordingBackend::store(const Held& tile, const MutableSlowMatrix& block) {
  for (std::int64_t i = 0; i < tile.rows; ++i) {
    for (std::int64_t j = 0; j < tile.columns; ++j) {
      transfer(WordMove::Kind::store, view(tile).word(i, j), word_of(block, i, j));
    }
  }
}

void RecordingBackend::release(const Held& tile) {
  for (std::int64_t word = 0; word < tile.piece.words; ++word) {
    add(WordMove::Kind::free, tile.piece.first + word, {});
  }
}

void RecordingBackend::begin_stream(Held& stream, const SlowMatrix& block) {
  stream.stream = static_cast<std::int64_t>(wires_.size());
  wires_.push_back(
      {block, std::vector<int>(static_cast<std::size_t>(block.rows() * block.columns()))});
}

void RecordingBackend::begin_stream_out(Held& stream, const MutableSlowMatrix& block) {
  begin_stream(stream, block);
}

void RecordingBackend::end_stream(const Held& stream) {
  const Wire& wire = wires_[static_cast<std::size_t>(stream.stream)];
  const bool once =
      std::all_of(wire.uses.begin(), wire.uses.end(), [](int uses) { return uses == 1; });
  if (!once && misused_.empty()) misused_ = stream.name;
  wires_.pop_back();
}

void RecordingBackend::require_streams_used() const {
  if (misused_.empty()) return;
  throw InternalError("stream '" + misused_ + "': an operation did not use each word once");
}

}  // namespace attest::io
