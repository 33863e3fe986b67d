#include "io/machine/counting_machine.hpp"

#include <algorithm>
#include <limits>

namespace attest::io {
namespace {

constexpr float kUndefined = std::numeric_limits<float>::quiet_NaN();

std::size_t words_of(const Held& held) {
  return static_cast<std::size_t>(held.rows) * static_cast<std::size_t>(held.columns);
}

}  // namespace

static_assert(Machine<CountingMachine>);

ArenaBackend::ArenaBackend(FastMemory capacity, SlowGuard guard)
    : grows_(capacity.words == FastMemory::kUnlimited),
      arena_(grows_ ? 0 : static_cast<std::size_t>(capacity.words), kUndefined),
      guard_(guard) {}

float* ArenaBackend::at(const Held& tile) {
  const auto end = static_cast<std::size_t>(tile.piece.first + tile.piece.words);
  if (grows_ && arena_.size() < end) arena_.resize(std::max(end, 2 * arena_.size()), kUndefined);
  return arena_.data() + tile.piece.first;
}

void ArenaBackend::undefined(const Held& tile) {
  std::fill_n(at(tile), words_of(tile), kUndefined);
}

void ArenaBackend::load(const Held& tile, const SlowMatrix& block) {
  SlowAccess::require_data(block);
  SlowAccess::copy_in(block, at(tile));
}

void ArenaBackend::store(const Held& tile, const MutableSlowMatrix& block) {
  SlowAccess::require_data(block);
  SlowAccess::copy_out(at(tile), tile.columns, block);
}

std::vector<float>& ArenaBackend::new_wire(Held& stream) {
  stream.stream = static_cast<std::int64_t>(streams_live_++);
  if (wires_.size() < streams_live_) wires_.emplace_back();
  std::vector<float>& wire = wires_[static_cast<std::size_t>(stream.stream)];
  wire.assign(words_of(stream), kUndefined);
  return wire;
}

void ArenaBackend::begin_stream(Held& stream, const SlowMatrix& block) {
  SlowAccess::require_data(block);
  SlowAccess::copy_in(block, new_wire(stream).data());
}

void ArenaBackend::begin_stream_out(Held& stream, const MutableSlowMatrix& block) {
  SlowAccess::require_data(block);
  new_wire(stream);
}

void ArenaBackend::end_stream_out(const Held& stream, const MutableSlowMatrix& block) {
  SlowAccess::copy_out(view(stream).data, stream.columns, block);
  --streams_live_;
}

MutableSlowMatrix ArenaBackend::workspace(const char* name, std::int64_t rows,
                                          std::int64_t columns) {
  const Words words = Words(rows) * columns;
  workspaces_.emplace_back(static_cast<std::size_t>(words.value()), kUndefined, guard_);
  return {name, rows, columns, DType::f32, workspaces_.back().data(), columns};
}

TileView ArenaBackend::view(const Held& held) {
  float* data = held.stream < 0 ? at(held) : wires_[static_cast<std::size_t>(held.stream)].data();
  return {data, held.rows, held.columns, held.columns};
}

}  // namespace attest::io
