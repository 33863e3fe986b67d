#include <algorithm>
#include <cstring>
#include <string>

#include "gpu/ptx/memory/addresses.hpp"

/// cp.async: bytes are read when the copy is issued and arrive at the wait that covers them, the
/// latest that a device may be.
namespace attest::ptx {
namespace {

template <class F>
void for_each_active(const Warp& warp, F&& function) {
  for (std::uint32_t lane = 0; lane < kWarpLanes; ++lane) {
    if ((warp.mask() >> lane & 1U) != 0) function(lane);
  }
}

bool is_size(std::uint64_t bytes, bool is_cached) {
  return bytes == 16 || (is_cached && (bytes == 4 || bytes == 8));
}

// Where a copy of a lane begins to arrive; null where it may not.
std::byte* begin(const Warp& warp, const Instruction& in, std::uint32_t lane, std::uint64_t to) {
  BlockRun& block = warp.block();
  std::byte* const seen =
      block.shared().glance_copy(to, in.immediates[0], BlockRun::number_of(warp, lane));
  if (seen != nullptr) return seen;
  std::byte* const data = shared_pointer(warp, to);
  return block.begin_copy(warp, in, lane, data, in.immediates[0]) ? data : nullptr;
}

// Where a lane's copy reads; null where it may not.
const std::byte* source_of(const Warp& warp, const Instruction& in, std::uint32_t lane,
                           std::uint64_t source, std::size_t taken) {
  if (source % in.immediates[0] == 0) {
    return access(warp, in, Space::global, source, lane, taken, Use::read);
  }
  warp.block().report(
      {simt::Fault::misaligned, "lane " + std::to_string(BlockRun::number_of(warp, lane)) +
                                    " copies " + std::to_string(in.immediates[0]) +
                                    " bytes from an address that is no multiple of that"},
      in);
  return nullptr;
}

// The first bytes come from the source, as many as the last operand says, the others are zero.
void copy(Warp& warp, const Instruction& in) {
  const auto bytes = static_cast<std::size_t>(in.immediates[0]);
  const Lanes<std::uint64_t> to = addresses_of(warp, in.addresses[0]),
                             source = addresses_of(warp, in.addresses[1]);
  Lanes<std::size_t> taken;
  std::uint32_t whole = 0;  // lanes that take all
  for (std::size_t lane = 0; lane < kWarpLanes; ++lane) {
    const bool says = in.variant != 0;
    taken[lane] =
        says ? std::min<std::size_t>(warp.read<std::uint32_t>(in.slots[0])[lane], bytes) : bytes;
    whole |= std::uint32_t{taken[lane] == bytes} << lane;
  }
  whole &= warp.mask();
  const std::uint32_t seen =
      whole == 0 ? 0 : warp.block().glance_global(warp, whole, source, bytes);
  for_each_active(warp, [&](std::uint32_t lane) {
    simt::AsyncCopies& copies = warp.block().copies(warp, lane);
    auto& copy = copies.pending.emplace_back();  // zero
    copy.to = begin(warp, in, lane, to[lane]);
    copy.bytes = bytes;
    copy.group = copies.group;
    const bool is_seen = (seen >> lane & 1U) != 0;
    const std::byte* from = nullptr;
    if (is_seen) {
      // NOLINTNEXTLINE(performance-no-int-to-ptr): global addresses are pointers of the host
      from = reinterpret_cast<const std::byte*>(source[lane]);
    } else if (taken[lane] > 0) {
      from = source_of(warp, in, lane, source[lane], taken[lane]);
    }
    if (is_seen && bytes == simt::AsyncCopies::kMostBytes) {
      std::memcpy(copy.from.data(), from, simt::AsyncCopies::kMostBytes);  // without a call
    } else if (from != nullptr) {
      std::memcpy(copy.from.data(), from, taken[lane]);
    }
    if (copy.to == nullptr) copies.pending.pop_back();
  });
}

void commit(Warp& warp, const Instruction&) {
  for_each_active(warp, [&](std::uint32_t lane) { ++warp.block().copies(warp, lane).group; });
}

template <bool kAll>
void wait(Warp& warp, const Instruction& in) {
  BlockRun& block = warp.block();
  for_each_active(warp, [&](std::uint32_t lane) {
    simt::AsyncCopies& copies = block.copies(warp, lane);
    const std::uint64_t before =
        kAll ? copies.group + 1 : copies.group - std::min(copies.group, in.immediates[0]);
    copies.end(before, block.shared(), BlockRun::number_of(warp, lane));
  });
}

// Only 16 bytes may pass by the first cache. The variant tells whether the source's bytes are said.
Execute copies(const Spelling& spelling, Instruction& in) {
  in.variant = in.slots.size() > (spelling.has("L2::cache_hint") ? 1U : 0U) ? 1 : 0;
  return is_size(in.immediates[0], spelling.has("ca")) ? copy : nullptr;
}

constexpr Form kForms[] = {
    {"cp.async(.ca|.cg)(.shared|.shared::cta).global[.L2::64B|.L2::128B|.L2::256B]",
     "[d] [a] #i b:b32?", copies},
    {"cp.async(.ca|.cg)(.shared|.shared::cta).global.L2::cache_hint[.L2::64B|.L2::128B|.L2::256B]",
     "[d] [a] #i c:b64", copies},
    {"cp.async(.ca|.cg)(.shared|.shared::cta).global.L2::cache_hint[.L2::64B|.L2::128B|.L2::256B]",
     "[d] [a] #i b:b32 c:b64", copies},
    {"cp.async.commit_group", "", as<commit>},
    {"cp.async.wait_group", "#i", as<wait<false>>},
    {"cp.async.wait_all", "", as<wait<true>>},
};

}  // namespace

std::span<const Form> async_copy_forms() { return kForms; }

}  // namespace attest::ptx
