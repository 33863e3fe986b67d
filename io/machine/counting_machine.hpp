#pragma once

#include <deque>
#include <vector>

#include "io/machine/guarded_pages.hpp"
#include "io/machine/metered_machine.hpp"

namespace attest::io {

/// Keeps the elements of tiles in an arena of exactly as many floats as there are words of fast
/// memory, in the places the meter gives them. Scratch tiles are NaN until they are written, and
/// loads copy, so that a schedule cannot lean on memory it did not pay for.
class ArenaBackend {
 public:
  static constexpr Data kData = Data::moved;

  explicit ArenaBackend(FastMemory capacity, SlowGuard guard = default_guard());

  /// Tells whether what the backend keeps in slow memory is closed between loads and stores.
  SlowGuard guard() const { return guard_; }

  void undefined(const Held& tile);
  void load(const Held& tile, const SlowMatrix& block);
  void store(const Held& tile, const MutableSlowMatrix& block);
  void release(const Held&) {}
  void begin_stream(Held& stream, const SlowMatrix& block);
  void end_stream(const Held&) { --streams_live_; }
  void begin_stream_out(Held& stream, const MutableSlowMatrix& block);
  void end_stream_out(const Held& stream, const MutableSlowMatrix& block);
  MutableSlowMatrix workspace(const char* name, std::int64_t rows, std::int64_t columns);

  TileView view(const Held& held);
  ConstTileView const_view(const Held& held) { return view(held); }

  template <class Operation, class... Views>
  void compute(const Operation& operation, Views... views) {
    operation(views...);
  }

 private:
  float* at(const Held& tile);
  std::vector<float>& new_wire(Held& stream);

  bool grows_;  // no capacity in words: the arena is as long as the longest use so far
  std::vector<float> arena_;
  // Words on their way in or out, one buffer per live stream: not fast memory, of which a stream
  // uses one word at a time, but the wire.
  std::deque<std::vector<float>> wires_;
  std::size_t streams_live_ = 0;
  SlowGuard guard_;
  std::deque<SlowFloats> workspaces_;
};

/// Runs a schedule on data and counts what it moves. The arithmetic is that of the operations, so
/// the outputs have the same bits on every machine that runs them.
/// [io/machine/counting_machine_test]
using CountingMachine = MeteredMachine<ArenaBackend>;

}  // namespace attest::io
