#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "io/machine/machine.hpp"
#include "io/machine/words.hpp"

namespace attest::cpu {

/// step(index) for 0 .. count-1, in any order, on so many threads; what a step throws is thrown
/// here. [schedules/native_test "what a step throws"]
void on_threads(std::int64_t count, std::int32_t threads,
                const std::function<void(std::int64_t)>& step);

/// Runs a schedule without counting: loads of float32 rows are views, other tiles lie in one arena
/// per thread, parallel blocks run on all threads.
class NativeMachine {
 public:
  /// A view of slow memory, or a copy in the arena.
  class LoadedTile {
   public:
    LoadedTile(const LoadedTile&) = delete;
    LoadedTile& operator=(const LoadedTile&) = delete;
    ~LoadedTile() { machine_.used_ = before_; }

    std::int64_t rows() const { return view_.rows; }
    std::int64_t columns() const { return view_.columns; }

   private:
    friend class NativeMachine;
    LoadedTile(NativeMachine& machine, const io::SlowMatrix& block, const float* packed)
        : machine_(machine),
          before_(machine.used_),
          view_(packed == nullptr ? machine.copy(block)
                                  : io::ConstTileView(packed, block.rows(), block.columns(),
                                                      io::SlowAccess::row_stride(block))) {}

    NativeMachine& machine_;
    std::int64_t before_;
    io::ConstTileView view_;
  };

  class Tile {
   public:
    Tile(const Tile&) = delete;
    Tile& operator=(const Tile&) = delete;
    ~Tile() { machine_.used_ = before_; }

    std::int64_t rows() const { return view_.rows; }
    std::int64_t columns() const { return view_.columns; }

   private:
    friend class NativeMachine;
    Tile(NativeMachine& machine, std::int64_t rows, std::int64_t columns)
        : machine_(machine), before_(machine.used_), view_(machine.take(rows, columns)) {}

    NativeMachine& machine_;
    std::int64_t before_;
    io::TileView view_;
  };

  /// Words that pass: rows one after the other, a view where they lie so.
  class Stream {
   public:
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;
    ~Stream() { --machine_.wires_live_; }

   private:
    friend class NativeMachine;
    Stream(NativeMachine& machine, const io::SlowMatrix& block)
        : machine_(machine), view_(machine.wire(block)) {}

    NativeMachine& machine_;
    io::ConstTileView view_;
  };

  class StreamOut {
   public:
    StreamOut(const StreamOut&) = delete;
    StreamOut& operator=(const StreamOut&) = delete;
    ~StreamOut() {
      io::SlowAccess::copy_out(view_.data, view_.stride, block_);
      --machine_.wires_live_;
    }

   private:
    friend class NativeMachine;
    StreamOut(NativeMachine& machine, const io::MutableSlowMatrix& block)
        : machine_(machine), block_(block), view_(machine.wire_out(block)) {}

    NativeMachine& machine_;
    io::MutableSlowMatrix block_;
    io::TileView view_;
  };

  /// `words`: the most that the schedule's tiles need at once.
  NativeMachine(std::int64_t words, std::int32_t threads)
      : threads_(std::max(threads, 1)), arena_(static_cast<std::size_t>(words)) {}
  NativeMachine(const NativeMachine&) = delete;
  NativeMachine& operator=(const NativeMachine&) = delete;

  LoadedTile load(const io::SlowMatrix& block, const char*) {
    // A column's elements must follow each other, as the operations take them.
    const bool view = block.columns() > 1 || io::SlowAccess::row_stride(block) == 1;
    return LoadedTile(*this, block, view ? io::SlowAccess::packed_rows(block) : nullptr);
  }
  Tile scratch(std::int64_t rows, std::int64_t columns, const char*) {
    return Tile(*this, rows, columns);
  }
  Stream stream(const io::SlowMatrix& block, const char*) { return Stream(*this, block); }
  StreamOut stream_out(const io::MutableSlowMatrix& block, const char*) {
    return StreamOut(*this, block);
  }
  void load_into(Tile& tile, const io::SlowMatrix& block) {
    io::SlowAccess::copy_in(block, tile.view_.data);
  }
  void store(const Tile& tile, const io::MutableSlowMatrix& block) {
    io::SlowAccess::copy_out(tile.view_.data, tile.view_.stride, block);
  }

  template <class Operation, class... Tiles>
  void compute(const Operation& operation, Tiles&... tiles) {
    operation(view(tiles)...);
  }

  io::MutableSlowMatrix workspace(std::int64_t rows, std::int64_t columns, const char* name) {
    workspaces_.emplace_back(static_cast<std::size_t>(rows * columns));
    return {name, rows, columns, DType::f32, workspaces_.back().data(), columns};
  }

  template <class Body>
  void for_tiles(io::Range range, std::int64_t block, const Body& body) {
    for (std::int64_t first = range.begin; first < range.end; first += block) {
      body(io::Range{first, std::min(first + block, range.end)});
    }
  }
  template <class Body>
  void for_tiles(const std::vector<io::Range>& ranges, std::int64_t block, const Body& body) {
    for (const io::Range& range : ranges) for_tiles(range, block, body);
  }

  template <class Body>
  void parallel_tiles(io::Range range, std::int64_t block, const Body& body) {
    const std::int64_t count = io::tiles(range.count(), block);
    if (threads_ == 1 || count < 2) {
      return for_tiles(range, block, [&](io::Range tile) { body(*this, tile); });
    }
    on_helpers(count, [&](std::int64_t index, NativeMachine& helper) {
      const std::int64_t first = range.begin + index * block;
      body(helper, io::Range{first, std::min(first + block, range.end)});
    });
  }
  template <class Body>
  void parallel_tiles(const std::vector<io::Range>& ranges, std::int64_t block, const Body& body) {
    parallel_tiles(joined(ranges, block), block, body);
  }

 private:
  static io::ConstTileView view(const LoadedTile& tile) { return tile.view_; }
  static io::ConstTileView view(const Stream& stream) { return stream.view_; }
  static io::ConstTileView view(const Tile& tile) { return tile.view_; }
  static io::TileView view(Tile& tile) { return tile.view_; }
  static io::TileView view(StreamOut& stream) { return stream.view_; }

  /// Returns the one range that has the same blocks. Throws InternalError for ranges that leave a
  /// gap, overlap, or end within a block.  [schedules/native_test "parallel ranges that do not
  /// follow"]
  static io::Range joined(const std::vector<io::Range>& ranges, std::int64_t block);

  io::TileView take(std::int64_t rows, std::int64_t columns);
  io::ConstTileView copy(const io::SlowMatrix& block);
  io::ConstTileView wire(const io::SlowMatrix& block);
  io::TileView wire_out(const io::SlowMatrix& block);
  // step(index, machine of the thread) for 0 .. count-1, in any order.
  void on_helpers(std::int64_t count,
                  const std::function<void(std::int64_t, NativeMachine&)>& step);

  std::int32_t threads_;
  std::vector<float> arena_;
  std::int64_t used_ = 0;
  std::deque<std::vector<float>> wires_;
  std::size_t wires_live_ = 0;
  std::deque<std::vector<float>> workspaces_;
  std::vector<std::unique_ptr<NativeMachine>> helpers_;  // one for each thread
};

}  // namespace attest::cpu
