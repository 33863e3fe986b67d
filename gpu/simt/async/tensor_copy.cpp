#include "gpu/simt/async/tensor_copy.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "gpu/simt/block.hpp"

namespace attest::simt {
namespace {

constexpr std::uint32_t kPiece = 16;  // bytes that stay together
// PTX ISA, cp.async.bulk.tensor: of the address in shared memory.
constexpr std::uint32_t kSharedAlignment = 128;

// The box in shared memory, of which every byte must exist.
std::uint32_t require_box(AsyncBlock& block, const void* shared, const TensorMap& map,
                          const char* verb, SourceLine where) {
  const auto bytes = static_cast<std::size_t>(map.shape.box_bytes());
  const auto text = [&] {
    return "a tensor copy of lane " + std::to_string(block.lane_number()) + verb +
           block.shared().describe(shared, bytes);
  };
  const auto address = block.shared().address(shared);
  if (!address || block.shared().at(*address, bytes) == nullptr) {
    block.stop(Fault::out_of_bounds, text(), where);
  }
  const std::uint32_t alignment = map.shape.rank == 0 ? kPiece : kSharedAlignment;
  if (*address % alignment != 0) {
    block.stop(Fault::misaligned, text() + ", at no multiple of " + std::to_string(alignment),
               where);
  }
  return *address;
}

void require_policy(AsyncBlock& block, const TensorMap& map, bool counted, SourceLine where) {
  if (counted == (map.tensor >= 0)) return;
  block.stop(Fault::uncounted,
             counted ? "a tensor copy is counted, but its map is of no tensor that is"
                     : "a tensor copy is not counted, but its map is of '" +
                           block.tensor_name(map.tensor) + "'",
             where);
}

// The parts of a box's rows that exist: function(byte of the tensor, byte of the box, bytes).
template <class Function>
void for_each_row(const TensorMap& map, const BoxPlace& at, Function&& function) {
  const TensorShape& shape = map.shape;
  const int bytes = shape.element_bytes(), row_bytes = shape.box[0] * bytes;
  const int inside = shape.inside(0, at[0]), first = std::max(-at[0], 0);
  if (inside == 0) return;
  std::array<int, TensorShape::kMostDimensions> y{};  // of the row in the box; y[0] stays 0
  for (int box_byte = first * bytes;; box_byte += row_bytes) {
    std::int64_t from = (std::int64_t{at[0]} + first) * bytes;
    bool exists = true;
    for (std::size_t k = 1; k < y.size(); ++k) {
      const std::int64_t place = std::int64_t{at[k]} + y[k];
      exists = exists && place >= 0 && place < shape.extents[k];
      from += place * shape.stride_bytes[k - 1];
    }
    if (exists) function(map.data + from, box_byte, inside * bytes);
    std::size_t k = 1;
    while (k < y.size() && ++y[k] == shape.box[k]) y[k++] = 0;
    if (k == y.size()) return;
  }
}

}  // namespace

std::uint32_t swizzled(std::uint32_t address, Swizzle swizzle) {
  constexpr std::array<std::uint32_t, 4> kBits{0, 1, 3, 7};
  return address ^ (address >> 7 & kBits[static_cast<std::size_t>(swizzle)]) << 4;
}

void TensorCopies::begin(std::uint32_t lanes) {
  loads_.clear();
  stores_.clear();
  groups_.assign(lanes, 0);
}

void TensorCopies::load(AsyncBlock& block, void* shared, const TensorMap& map, bool counted,
                        const BoxPlace& place, const void* barrier, SourceLine where) {
  require_policy(block, map, counted, where);
  const std::uint32_t lane = block.lane_number();
  const std::uint32_t address = require_box(block, shared, map, " writes ", where);
  const auto bytes = static_cast<std::size_t>(map.shape.box_bytes());
  Load made{{map, counted, place, address, lane, where},
            std::vector<std::byte>(bytes),
            block.mbarriers().begin_copy(block, barrier, where)};
  if (const auto finding =
          block.shared().begin_copy(shared, bytes, lane, SharedMemory::Copier::tensor)) {
    block.report_once(*finding, where);
  }
  for_each_row(map, place, [&](const std::byte* from, int at, int count) {
    const auto size = static_cast<std::size_t>(count);
    if (counted) {
      block.read_row(map.tensor, from, made.box.data() + at, size, where);
    } else {
      std::memcpy(made.box.data() + at, from, size);
    }
  });
  loads_.push_back(std::move(made));
}

void TensorCopies::land(AsyncBlock& block, const Load& load) {
  SharedMemory& shared = block.shared();
  const std::uint32_t engine = block.mbarriers().engine(block, load.completion);
  for (std::uint32_t k = 0; k < load.box.size(); k += kPiece) {
    const std::uint32_t address = swizzled(load.copy.address + k, load.copy.map.shape.swizzle);
    std::byte* const to = shared.at(address, kPiece);
    std::memcpy(to, load.box.data() + k, kPiece);
    shared.end_copy(to, kPiece, engine);
  }
  block.mbarriers().complete(block, load.completion, static_cast<std::uint32_t>(load.box.size()),
                             load.copy.where);
}

bool TensorCopies::arrive(AsyncBlock& block) {
  const auto waited_for = std::stable_partition(
      loads_.begin(), loads_.end(),
      [&](const Load& load) { return !block.mbarriers().is_waited_for(load.completion); });
  const std::vector<Load> arriving(std::make_move_iterator(waited_for),
                                   std::make_move_iterator(loads_.end()));
  loads_.erase(waited_for, loads_.end());
  for (const Load& load : arriving) land(block, load);
  return !arriving.empty();
}

void TensorCopies::store(AsyncBlock& block, const TensorMap& map, bool counted,
                         const BoxPlace& place, const void* shared, SourceLine where) {
  require_policy(block, map, counted, where);
  const std::uint32_t lane = block.lane_number();
  const std::uint32_t address = require_box(block, shared, map, " reads ", where);
  const auto bytes = static_cast<std::size_t>(map.shape.box_bytes());
  if (auto finding = block.shared().begin_async_read(shared, bytes, {lane, 1, 1})) {
    finding->text = "a tensor copy of lane " + std::to_string(lane) + " " + finding->text;
    block.report_once(*finding, where);
  }
  stores_.push_back({{map, counted, place, address, lane, where}, groups_[lane]});
}

void TensorCopies::carry_out(AsyncBlock& block, const Store& store) {
  const Copy& copy = store.copy;
  SharedMemory& shared = block.shared();
  const auto bytes = static_cast<std::size_t>(copy.map.shape.box_bytes());
  std::vector<std::byte> box(bytes);
  for (std::uint32_t k = 0; k < bytes; k += kPiece) {
    const std::byte* const from =
        shared.at(swizzled(copy.address + k, copy.map.shape.swizzle), kPiece);
    std::memcpy(box.data() + k, from, kPiece);
  }
  shared.end_async_read(shared.at(copy.address, bytes), bytes, copy.lane);
  for_each_row(copy.map, copy.place, [&](std::byte* to, int at, int count) {
    const auto size = static_cast<std::size_t>(count);
    if (copy.counted) {
      block.write_row(copy.map.tensor, to, box.data() + at, size, copy.where);
    } else {
      std::memcpy(to, box.data() + at, size);
    }
  });
}

void TensorCopies::wait(AsyncBlock& block, std::uint32_t lane, std::uint64_t most_pending) {
  const std::uint64_t before = groups_[lane] - std::min(groups_[lane], most_pending);
  std::erase_if(stores_, [&](const Store& store) {
    if (store.copy.lane != lane || store.group >= before) return false;
    carry_out(block, store);
    return true;
  });
}

void TensorCopies::end(AsyncBlock& block) {
  const auto unfinished = [&](const Copy& copy, const char* what) {
    block.report_once({Fault::async_pending, "the block ends while a tensor copy of lane " +
                                                 std::to_string(copy.lane) + what},
                      copy.where);
  };
  for (const Load& load : loads_) {
    unfinished(load.copy, " writes shared memory; nothing waits for its mbarrier");
  }
  for (const Store& store : stores_) {
    unfinished(store.copy, " reads shared memory; cp_async_bulk_wait_read<0>() waits for it");
    carry_out(block, store);
  }
}

void begin_tensor_load(void* shared, const TensorMap& map, bool counted, const BoxPlace& place,
                       const void* barrier, SourceLine where) {
  Block& block = Block::running();
  block.tensor_copies().load(block, shared, map, counted, place, barrier, where);
}

void begin_tensor_store(const TensorMap& map, bool counted, const BoxPlace& place,
                        const void* shared, SourceLine where) {
  Block& block = Block::running();
  block.tensor_copies().store(block, map, counted, place, shared, where);
}

void commit_tensor_stores() {
  Block& block = Block::running();
  block.tensor_copies().commit(block.lane().number);
}

void wait_for_tensor_stores(std::uint64_t most_pending) {
  Block& block = Block::running();
  block.tensor_copies().wait(block, block.lane().number, most_pending);
}

}  // namespace attest::simt
