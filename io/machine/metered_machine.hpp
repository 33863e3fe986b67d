#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "io/machine/machine.hpp"
#include "io/machine/meter.hpp"

namespace attest::io {

/// A tile, or a stream, as a backend sees it.
struct Held {
  const char* name = "";
  std::int64_t rows = 0, columns = 0;
  Meter::Piece piece;
  std::int64_t stream = -1;  // the backend's number of a stream; -1: a tile
};

/// Treatment of data by a machine: moved, or only counted. Without data, equal moves are counted in
/// one step.
enum class Data : std::uint8_t { moved, counted_only };

/// The verbs of io::Machine around a Meter. The Backend says what becomes of the elements:
///
///   static constexpr Data kData;
///   void undefined(held);  void load(held, block);  void store(held, block);  void release(held);
///   void begin_stream(held&, block);      void end_stream(held);
///   void begin_stream_out(held&, block);  void end_stream_out(held, block);
///   View view(held);  ConstView const_view(held);  void compute(operation, views…);
///   MutableSlowMatrix workspace(name, rows, columns);
template <class Backend>
class MeteredMachine {
 public:
  /// Fast memory, as long as it lives.
  class LoadedTile {
   public:
    LoadedTile(const LoadedTile&) = delete;
    LoadedTile& operator=(const LoadedTile&) = delete;
    ~LoadedTile() {
      machine_.backend_.release(held_);
      machine_.meter_.release(held_.piece);
    }

    std::int64_t rows() const { return held_.rows; }
    std::int64_t columns() const { return held_.columns; }

   private:
    friend class MeteredMachine;

    LoadedTile(MeteredMachine& machine, const char* name, std::int64_t rows, std::int64_t columns,
               std::size_t width)
        : machine_(machine),
          held_{name, rows, columns, machine.meter_.take(name, rows, columns, width)} {}
    LoadedTile(MeteredMachine& machine, const SlowMatrix& block, const char* name)
        : LoadedTile(machine, name, block.rows(), block.columns(), size_bytes(block.dtype())) {
      machine.charge_read(block);
      machine.backend_.load(held_, block);
    }

    MeteredMachine& machine_;
    Held held_;
  };

  /// A tile that operations may write.
  class Tile : public LoadedTile {
    friend class MeteredMachine;

    Tile(MeteredMachine& machine, std::int64_t rows, std::int64_t columns, const char* name)
        : LoadedTile(machine, name, rows, columns, sizeof(float)) {
      machine.backend_.undefined(this->held_);
    }
  };

  /// Words that pass through one word of fast memory.
  class Stream {
   public:
    ~Stream() { place_.machine_.backend_.end_stream(held_); }

   private:
    friend class MeteredMachine;

    Stream(MeteredMachine& machine, const SlowMatrix& block, const char* name)
        : place_(machine, name, 1, 1, size_bytes(block.dtype())),
          held_{name, block.rows(), block.columns(), place_.held_.piece} {
      machine.charge_read(block);
      machine.backend_.begin_stream(held_, block);
    }

    LoadedTile place_;
    Held held_;
  };

  /// Words that leave one by one from where an operation has them: no fast memory of their own.
  class StreamOut {
   public:
    StreamOut(const StreamOut&) = delete;
    StreamOut& operator=(const StreamOut&) = delete;
    ~StreamOut() { machine_.backend_.end_stream_out(held_, block_); }

   private:
    friend class MeteredMachine;

    StreamOut(MeteredMachine& machine, const MutableSlowMatrix& block, const char* name)
        : machine_(machine), block_(block), held_{name, block.rows(), block.columns(), {}} {
      machine.charge_write(block);
      machine.backend_.begin_stream_out(held_, block);
    }

    MeteredMachine& machine_;
    MutableSlowMatrix block_;
    Held held_;
  };

  template <class... Arguments>
  explicit MeteredMachine(FastMemory capacity, Arguments&&... arguments)
      : meter_(capacity), backend_(capacity, std::forward<Arguments>(arguments)...) {}
  MeteredMachine(const MeteredMachine&) = delete;
  MeteredMachine& operator=(const MeteredMachine&) = delete;

  LoadedTile load(const SlowMatrix& block, const char* name) {
    return LoadedTile(*this, block, name);
  }
  Tile scratch(std::int64_t rows, std::int64_t columns, const char* name) {
    return Tile(*this, rows, columns, name);
  }
  Stream stream(const SlowMatrix& block, const char* name) { return Stream(*this, block, name); }
  StreamOut stream_out(const MutableSlowMatrix& block, const char* name) {
    return StreamOut(*this, block, name);
  }

  void load_into(Tile& tile, const SlowMatrix& block) {
    require_shape(tile.held_, block);
    charge_read(block);
    backend_.load(tile.held_, block);
  }

  void store(const LoadedTile& tile, const MutableSlowMatrix& block) {
    require_shape(tile.held_, block);
    charge_write(block);
    backend_.store(tile.held_, block);
  }

  template <class Operation, class... Tiles>
  void compute(const Operation& operation, Tiles&... tiles) {
    if constexpr (Backend::kData == Data::moved) backend_.compute(operation, view(tiles)...);
  }

  MutableSlowMatrix workspace(std::int64_t rows, std::int64_t columns, const char* name) {
    return backend_.workspace(name, rows, columns);
  }

  template <class Body>
  void for_tiles(Range range, std::int64_t block, const Body& body) {
    if constexpr (Backend::kData == Data::moved) {
      for (std::int64_t first = range.begin; first < range.end; first += block) {
        body(Range{first, std::min(first + block, range.end)});
      }
    } else {
      const std::int64_t full = range.count() / block, full_end = range.begin + full * block;
      if (full > 0) {
        const auto repetition = meter_.repeat(full);
        body(Range{range.begin, range.begin + block});
      }
      if (full_end < range.end) body(Range{full_end, range.end});
    }
  }

  template <class Body>
  void for_tiles(const std::vector<Range>& ranges, std::int64_t block, const Body& body) {
    for (const Range& range : ranges) for_tiles(range, block, body);
  }

  template <class Body>
  void parallel_tiles(Range range, std::int64_t block, const Body& body) {
    for_tiles(range, block, [&](Range tile) {
      const Meter::Block fresh(meter_);
      body(*this, tile);
    });
  }

  template <class Body>
  void parallel_tiles(const std::vector<Range>& ranges, std::int64_t block, const Body& body) {
    for (const Range& range : ranges) parallel_tiles(range, block, body);
  }

  const Meter& meter() const { return meter_; }
  Traffic traffic() const { return meter_.traffic(); }
  Backend& backend() { return backend_; }

 private:
  void charge_read(const SlowMatrix& block) {
    meter_.read(block.rows() * block.columns(), size_bytes(block.dtype()));
  }
  void charge_write(const SlowMatrix& block) {
    meter_.write(block.rows() * block.columns(), size_bytes(block.dtype()));
  }

  auto view(Tile& tile) { return backend_.view(tile.held_); }
  auto view(const LoadedTile& tile) { return backend_.const_view(tile.held_); }
  auto view(const Stream& stream) { return backend_.const_view(stream.held_); }
  auto view(StreamOut& stream) { return backend_.view(stream.held_); }

  static void require_shape(const Held& tile, const SlowMatrix& block) {
    if (tile.rows == block.rows() && tile.columns == block.columns()) return;
    throw InternalError("tile '" + std::string(tile.name) + "' is " + std::to_string(tile.rows) +
                        " x " + std::to_string(tile.columns) + ", but the block of " +
                        block.name() + " is " + std::to_string(block.rows()) + " x " +
                        std::to_string(block.columns()));
  }

  Meter meter_;
  Backend backend_;
};

}  // namespace attest::io
