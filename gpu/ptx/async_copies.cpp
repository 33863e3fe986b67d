#include <algorithm>
#include <cstring>
#include <string>

#include "gpu/ptx/addresses.hpp"

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

// The first `taken` bytes come from the source, the others are zero.
void begin_copy(const Warp& warp, const Instruction& in, std::uint32_t lane, std::size_t taken) {
  BlockRun& block = warp.block();
  const std::size_t bytes = in.immediates[0];
  std::byte* const to = shared_pointer(warp, address_of(warp, in.addresses[0], lane));
  const bool may_write = block.begin_copy(warp, in, lane, to, bytes);
  simt::AsyncCopies& copies = block.copies(warp, lane);
  simt::AsyncCopies::Copy copy{to, {}, bytes, copies.group};
  const std::uint64_t source = address_of(warp, in.addresses[1], lane);
  if (taken > 0 && source % bytes != 0) {
    block.report({simt::Fault::misaligned,
                  "lane " + std::to_string(BlockRun::number_of(warp, lane)) + " copies " +
                      std::to_string(bytes) + " bytes from an address that is no multiple of that"},
                 in);
  } else if (taken > 0) {
    const std::byte* const from = access(warp, in, Space::global, source, lane, taken, Use::read);
    if (from != nullptr) std::memcpy(copy.from.data(), from, taken);
  }
  if (may_write) copies.pending.push_back(copy);
}

void copy(Warp& warp, const Instruction& in) {
  for_each_active(warp, [&](std::uint32_t lane) {
    const std::uint64_t taken =
        in.variant == 0 ? in.immediates[0] : warp.read<std::uint32_t>(in.slots[0])[lane];
    begin_copy(warp, in, lane, static_cast<std::size_t>(std::min(taken, in.immediates[0])));
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
