#include "cpu/kernels/machine/native_machine.hpp"

#include <omp.h>

#include <exception>
#include <string>

#include "core/error.hpp"

namespace attest::cpu {

static_assert(io::Machine<NativeMachine>);

void on_threads(std::int64_t count, std::int32_t threads,
                const std::function<void(std::int64_t)>& step) {
  if (threads == 1) {
    for (std::int64_t index = 0; index < count; ++index) step(index);
    return;
  }
  std::exception_ptr thrown;  // an exception must not leave the parallel region
#pragma omp parallel for schedule(dynamic) num_threads(threads)
  for (std::int64_t index = 0; index < count; ++index) {
    try {
      step(index);
    } catch (...) {
#pragma omp critical(attest_on_threads)
      thrown = std::current_exception();
    }
  }
  if (thrown) std::rethrow_exception(thrown);
}

io::Range NativeMachine::joined(const std::vector<io::Range>& ranges, std::int64_t block) {
  if (ranges.empty()) return {};
  for (std::size_t k = 1; k < ranges.size(); ++k) {
    const io::Range &before = ranges[k - 1], &range = ranges[k];
    if (range.begin == before.end && before.count() % block == 0) continue;
    throw InternalError("parallel blocks of " + std::to_string(block) +
                        " need ranges that follow each other at whole blocks, but " +
                        std::to_string(before.begin) + " to " + std::to_string(before.end) +
                        " is followed by " + std::to_string(range.begin) + " to " +
                        std::to_string(range.end));
  }
  return {ranges.front().begin, ranges.back().end};
}

io::TileView NativeMachine::take(std::int64_t rows, std::int64_t columns) {
  float* data = arena_.data() + used_;
  used_ += rows * columns;
  if (used_ > static_cast<std::int64_t>(arena_.size())) {
    throw InternalError("a schedule needs more words than its closed form says");
  }
  return {data, rows, columns, columns};
}

io::ConstTileView NativeMachine::copy(const io::SlowMatrix& block) {
  const io::TileView tile = take(block.rows(), block.columns());
  io::SlowAccess::copy_in(block, tile.data);
  return tile;
}

io::TileView NativeMachine::wire_out(const io::SlowMatrix& block) {
  if (wires_.size() == wires_live_) wires_.emplace_back();
  std::vector<float>& wire = wires_[wires_live_++];
  const auto words = static_cast<std::size_t>(block.rows() * block.columns());
  if (wire.size() < words) wire.resize(words);
  return {wire.data(), block.rows(), block.columns(), block.columns()};
}

io::ConstTileView NativeMachine::wire(const io::SlowMatrix& block) {
  const float* packed = io::SlowAccess::packed_rows(block);
  if (packed != nullptr &&
      (block.rows() == 1 || io::SlowAccess::row_stride(block) == block.columns())) {
    ++wires_live_;  // an unused wire, so that streams end alike
    if (wires_.size() < wires_live_) wires_.emplace_back();
    return {packed, block.rows(), block.columns(), block.columns()};
  }
  const io::TileView tile = wire_out(block);
  io::SlowAccess::copy_in(block, tile.data);
  return tile;
}

void NativeMachine::on_helpers(std::int64_t count,
                               const std::function<void(std::int64_t, NativeMachine&)>& step) {
  while (helpers_.size() < static_cast<std::size_t>(threads_)) {
    helpers_.push_back(
        std::make_unique<NativeMachine>(static_cast<std::int64_t>(arena_.size()), 1));
  }
  on_threads(count, threads_, [&](std::int64_t index) {
    step(index, *helpers_[static_cast<std::size_t>(omp_get_thread_num())]);
  });
}

}  // namespace attest::cpu
