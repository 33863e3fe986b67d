#include "gpu/ptx/memory/addresses.hpp"

#include <algorithm>
#include <cstring>
#include <span>
#include <string>

namespace attest::ptx {
namespace {

constexpr std::size_t kMostAlignment = 16;  // of what a lane reads at once

using SharedAccess = simt::SharedMemory::Access;

SharedAccess shared_access(Use use, const void* there, const void* value, std::size_t bytes) {
  switch (use) {
    case Use::read:
      return SharedAccess::read;
    case Use::add:
      return SharedAccess::atomic;
    case Use::exchange:
      return SharedAccess::exchange;
    case Use::write:
    case Use::strong_read:
    case Use::strong_write:
      break;
  }
  const bool is_same = value != nullptr && std::memcmp(there, value, bytes) == 0;
  return is_same ? SharedAccess::rewrite : SharedAccess::write;
}

simt::GlobalUse global_use(Use use) {
  switch (use) {
    case Use::read:
      return simt::GlobalUse::read;
    case Use::write:
      return simt::GlobalUse::write;
    case Use::strong_read:
      return simt::GlobalUse::strong_read;
    case Use::strong_write:
      return simt::GlobalUse::strong_write;
    case Use::add:
    case Use::exchange:
      break;
  }
  return simt::GlobalUse::add;
}

Use without_strength(Use use) {
  if (use == Use::strong_read) return Use::read;
  return use == Use::strong_write ? Use::write : use;
}

std::byte* access_shared(const Warp& warp, const Instruction& in, std::uint32_t lane,
                         std::uint64_t address, std::size_t bytes, Use use, const void* value) {
  BlockRun& block = warp.block();
  if (use == Use::read || use == Use::write) {
    const SharedAccess plain = use == Use::read ? SharedAccess::read : SharedAccess::write;
    std::byte* const seen =
        block.shared().glance(address, bytes, plain, BlockRun::number_of(warp, lane));
    if (seen != nullptr) return seen;
  }
  std::byte* const data = shared_pointer(warp, address);
  const bool is_inside = address + bytes <= static_cast<std::uint64_t>(block.shared().used_bytes());
  const SharedAccess how = is_inside ? shared_access(use, data, value, bytes) : SharedAccess::write;
  return block.touch_shared(warp, in, lane, data, bytes, how) && is_inside ? data : nullptr;
}

std::byte* access_local(const Warp& warp, const Instruction& in, std::uint32_t lane,
                        std::uint64_t address, std::size_t bytes) {
  BlockRun& block = warp.block();
  if (address % bytes == 0 && address + bytes <= block.program().local_bytes) {
    return block.local(warp, lane) + address;
  }
  block.report(
      {simt::Fault::out_of_bounds,
       "lane " + std::to_string(lane) + " of warp " + std::to_string(warp.number()) + " accesses " +
           std::to_string(bytes) + " bytes at byte " + std::to_string(address) +
           " of its local memory, which has " + std::to_string(block.program().local_bytes)},
      in);
  return nullptr;
}

// Which may only be read.
std::byte* access_parameters(const Warp& warp, const Instruction& in, std::uint64_t address,
                             std::size_t bytes, Use use) {
  BlockRun& block = warp.block();
  const std::span<const std::byte> parameters = block.parameters();
  if (use == Use::read && address % std::min<std::size_t>(bytes, kMostAlignment) == 0 &&
      address + bytes <= parameters.size()) {
    return const_cast<std::byte*>(parameters.data()) + address;
  }
  block.report(
      {simt::Fault::out_of_bounds,
       "warp " + std::to_string(warp.number()) + " accesses " + std::to_string(bytes) +
           " bytes at byte " + std::to_string(address) + " of the kernel's parameters, which has " +
           std::to_string(parameters.size()) + " that are only read"},
      in);
  return nullptr;
}

}  // namespace

Space space_of(std::uint64_t generic) {
  if (generic - kSharedWindow < kWindowBytes) return Space::shared;
  if (generic - kParamWindow < kWindowBytes) return Space::param;
  return generic - kLocalWindow < kWindowBytes ? Space::local : Space::global;
}

std::uint64_t window_of(Space space) {
  if (space == Space::shared) return kSharedWindow;
  if (space == Space::param) return kParamWindow;
  return space == Space::local ? kLocalWindow : 0;
}

std::uint64_t address_of(const Warp& warp, const Address& address, std::uint32_t lane) {
  const auto offset = static_cast<std::uint64_t>(address.offset);
  if (address.is_wide) return warp.read<std::uint64_t>(address.slot)[lane] + offset;
  return static_cast<std::uint32_t>(warp.read<std::uint32_t>(address.slot)[lane] + offset);
}

std::byte* shared_pointer(const Warp& warp, std::uint64_t address) {
  return static_cast<std::byte*>(warp.block().shared().dynamic()) + address;
}

std::byte* access(const Warp& warp, const Instruction& in, Space space, std::uint64_t address,
                  std::uint32_t lane, std::size_t bytes, Use use, const void* value) {
  switch (space) {
    case Space::shared:
      return access_shared(warp, in, lane, address, bytes, without_strength(use), value);
    case Space::local:
      return access_local(warp, in, lane, address, bytes);
    case Space::param:
      return access_parameters(warp, in, address, bytes, without_strength(use));
    default:
      break;
  }
  // NOLINTNEXTLINE(performance-no-int-to-ptr): global addresses are pointers of the host
  auto* const data = reinterpret_cast<std::byte*>(address);
  return warp.block().touch_global(warp, in, lane, data, bytes, global_use(use)) ? data : nullptr;
}

std::byte* access(const Warp& warp, const Instruction& in, std::uint32_t lane, std::size_t bytes,
                  Use use, const void* value) {
  const std::uint64_t address = address_of(warp, in.addresses[0], lane);
  if (!in.is_generic) return access(warp, in, in.space, address, lane, bytes, use, value);
  const Space space = space_of(address);
  return access(warp, in, space, address - window_of(space), lane, bytes, use, value);
}

}  // namespace attest::ptx
