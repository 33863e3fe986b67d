#include <algorithm>
#include <string>

#include "gpu/ptx/memory/addresses.hpp"
#include "gpu/ptx/memory/tensor_map.hpp"

/// cp.async.bulk: copies of rows and of boxes of tensors that complete on an mbarrier or in groups.
namespace attest::ptx {
namespace {

using simt::Fault;

constexpr std::size_t kHalf = kTensorMapBytes / 2;  // as maps are aligned

// function(lane), which may give the block up.
template <class F>
void for_each_active(Warp& warp, F&& function) {
  for (std::uint32_t lane = 0; lane < kWarpLanes; ++lane) {
    if ((warp.mask() >> lane & 1U) == 0) continue;
    warp.block().set_lane(BlockRun::number_of(warp, lane));
    function(lane);
  }
}

std::byte* shared_of(const Warp& warp, const Instruction& in, std::size_t operand,
                     std::uint32_t lane) {
  return shared_pointer(warp, address_of(warp, in.addresses[operand], lane));
}

// The map that a lane names, in the kernel's parameters or in global memory.
simt::TensorMap map_of(Warp& warp, const Instruction& in, std::size_t operand, std::uint32_t lane) {
  const std::uint64_t address = address_of(warp, in.addresses[operand], lane);
  const bool is_parameter = !in.is_generic && in.space == Space::param;
  const Space space = is_parameter ? Space::param : space_of(address);
  std::optional<simt::TensorMap> map;
  if (space != Space::shared && space != Space::local) {
    const std::uint64_t begin = is_parameter ? address : address - window_of(space);
    const auto half = [&](std::size_t at) {
      return access(warp, in, space, begin + at, lane, kHalf, Use::read);
    };
    const std::byte* const bytes = half(0);
    if (bytes != nullptr && half(kHalf) != nullptr) {
      map = decode_tensor_map({bytes, kTensorMapBytes});
    }
  }
  if (!map) {
    warp.block().stop(Fault::out_of_bounds, "a tensor copy names no tensor map", where(in));
  }
  return *map;
}

// One of a tensor with as many dimensions as the copy has coordinates.
simt::TensorMap fitting_map_of(Warp& warp, const Instruction& in, std::size_t operand,
                               std::uint32_t lane) {
  const simt::TensorMap map = map_of(warp, in, operand, lane);
  if (static_cast<std::uint32_t>(map.shape.rank) != in.elements) {
    warp.block().stop(Fault::out_of_bounds,
                      "a tensor copy of " + std::to_string(in.elements) +
                          " coordinates has a map of a tensor of " + std::to_string(map.shape.rank),
                      where(in));
  }
  return map;
}

simt::BoxPlace place_of(const Warp& warp, const Instruction& in, std::uint32_t lane) {
  simt::BoxPlace place{};
  for (std::size_t k = 0; k < in.elements; ++k) {
    place[k] = warp.read<std::int32_t>(in.slots[k])[lane];
  }
  return place;
}

void load_box(Warp& warp, const Instruction& in) {
  BlockRun& block = warp.block();
  for_each_active(warp, [&](std::uint32_t lane) {
    block.tensor_copies().load(block, shared_of(warp, in, 0, lane),
                               fitting_map_of(warp, in, 1, lane), true, place_of(warp, in, lane),
                               shared_of(warp, in, 2, lane), where(in));
  });
}

void store_box(Warp& warp, const Instruction& in) {
  BlockRun& block = warp.block();
  for_each_active(warp, [&](std::uint32_t lane) {
    block.tensor_copies().store(block, fitting_map_of(warp, in, 0, lane), true,
                                place_of(warp, in, lane), shared_of(warp, in, 1, lane), where(in));
  });
}

// Bytes in a row, as a box of a tensor that has no more.
simt::TensorMap row_of(Warp& warp, const Instruction& in, std::size_t operand, std::uint32_t lane) {
  constexpr std::uint32_t kPiece = 16;
  BlockRun& block = warp.block();
  const std::uint64_t address = address_of(warp, in.addresses[operand], lane);
  const std::uint32_t bytes = warp.read<std::uint32_t>(in.slots[0])[lane];
  if (address % kPiece != 0 || bytes % kPiece != 0) {
    block.stop(Fault::misaligned,
               "a bulk copy of " + std::to_string(bytes) +
                   " bytes: its size and its place in global memory are multiples of 16",
               where(in));
  }
  simt::TensorShape shape;
  shape.element = simt::Element::f32;
  shape.rank = 0;
  shape.extents[0] = shape.box[0] = static_cast<int>(bytes / sizeof(float));
  // NOLINTNEXTLINE(performance-no-int-to-ptr): global addresses are pointers of the host
  return {reinterpret_cast<std::byte*>(address), 0, shape};
}

void load_row(Warp& warp, const Instruction& in) {
  BlockRun& block = warp.block();
  for_each_active(warp, [&](std::uint32_t lane) {
    block.tensor_copies().load(block, shared_of(warp, in, 0, lane), row_of(warp, in, 1, lane), true,
                               {}, shared_of(warp, in, 2, lane), where(in));
  });
}

void store_row(Warp& warp, const Instruction& in) {
  BlockRun& block = warp.block();
  for_each_active(warp, [&](std::uint32_t lane) {
    block.tensor_copies().store(block, row_of(warp, in, 0, lane), true, {},
                                shared_of(warp, in, 1, lane), where(in));
  });
}

void commit(Warp& warp, const Instruction&) {
  BlockRun& block = warp.block();
  for_each_active(warp, [&](std::uint32_t) { block.tensor_copies().commit(block.lane_number()); });
}

// Writes are visible at once, so that a wait for reads is one for all.
void wait(Warp& warp, const Instruction& in) {
  BlockRun& block = warp.block();
  for_each_active(warp, [&](std::uint32_t) {
    block.tensor_copies().wait(block, block.lane_number(), in.immediates[0]);
  });
}

// Caches change no value; a map must be one.
void prefetch(Warp& warp, const Instruction& in) {
  for_each_active(warp, [&](std::uint32_t lane) { fitting_map_of(warp, in, 0, lane); });
}
void prefetch_map(Warp& warp, const Instruction& in) {
  for_each_active(warp, [&](std::uint32_t lane) { map_of(warp, in, 0, lane); });
}
void pass(Warp&, const Instruction&) {}

constexpr Form kForms[] = {
    {"cp.async.bulk.tensor(.1d|.2d|.3d|.4d|.5d)(.shared::cluster|.shared::cta).global[.tile]"
     ".mbarrier::complete_tx::bytes",
     "[d] [a,c] [m]", as<load_box>},
    {"cp.async.bulk.tensor(.1d|.2d|.3d|.4d|.5d)(.shared::cluster|.shared::cta).global[.tile]"
     ".mbarrier::complete_tx::bytes.L2::cache_hint",
     "[d] [a,c] [m] h:b64", as<load_box>},
    {"cp.async.bulk.tensor(.1d|.2d|.3d|.4d|.5d).global.shared::cta[.tile].bulk_group", "[d,c] [a]",
     as<store_box>},
    {"cp.async.bulk.tensor(.1d|.2d|.3d|.4d|.5d).global.shared::cta[.tile].bulk_group"
     ".L2::cache_hint",
     "[d,c] [a] h:b64", as<store_box>},
    {"cp.async.bulk.prefetch.tensor(.1d|.2d|.3d|.4d|.5d).L2.global[.tile]", "[a,c]", as<prefetch>},
    {"cp.async.bulk.prefetch.L2.global", "[a] b:b32", as<pass>},
    {"cp.async.bulk.prefetch.L2.global.L2::cache_hint", "[a] b:b32 h:b64", as<pass>},
    {"prefetch[.const|.param].tensormap", "[a]", as<prefetch_map>},
    {"prefetch[.global|.local](.L1|.L2)", "[a]", as<pass>},
    {"prefetch.global(.L2::evict_last|.L2::evict_normal)", "[a]", as<pass>},
    {"prefetchu.L1", "[a]", as<pass>},
    {"cp.async.bulk(.shared::cluster|.shared::cta).global.mbarrier::complete_tx::bytes",
     "[d] [a] b:b32 [m]", as<load_row>},
    {"cp.async.bulk(.shared::cluster|.shared::cta).global.mbarrier::complete_tx::bytes"
     ".L2::cache_hint",
     "[d] [a] b:b32 [m] h:b64", as<load_row>},
    {"cp.async.bulk.global.shared::cta.bulk_group", "[d] [a] b:b32", as<store_row>},
    {"cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint", "[d] [a] b:b32 h:b64",
     as<store_row>},
    {"cp.async.bulk.commit_group", "", as<commit>},
    {"cp.async.bulk.wait_group[.read]", "#i", as<wait>},
};

}  // namespace

std::span<const Form> bulk_copy_forms() { return kForms; }

}  // namespace attest::ptx
