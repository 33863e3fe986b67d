#pragma once

#include <cstddef>
#include <cstdint>

#include "gpu/ptx/execution/block_run.hpp"

/// Addresses: global and constant ones are the host's, others begin at zero.
namespace attest::ptx {

/// Generic addresses of shared and local memory and of parameters, where no pointer of the host is.
inline constexpr std::uint64_t kSharedWindow = std::uint64_t{0x7F} << 56;
inline constexpr std::uint64_t kLocalWindow = std::uint64_t{0x7E} << 56;
inline constexpr std::uint64_t kParamWindow = std::uint64_t{0x7D} << 56;
inline constexpr std::uint64_t kWindowBytes = std::uint64_t{1} << 32;

/// The space that a generic address lies in.
Space space_of(std::uint64_t generic);
/// The first generic address of a space.
std::uint64_t window_of(Space space);

/// Address of a lane's access: register and offset.
std::uint64_t address_of(const Warp& warp, const Address& address, std::uint32_t lane);

/// Returns those of all lanes.
inline Lanes<std::uint64_t> addresses_of(const Warp& warp, const Address& address) {
  const auto offset = static_cast<std::uint64_t>(address.offset);
  Lanes<std::uint64_t> addresses;
  for (std::size_t lane = 0; lane < kWarpLanes; ++lane) {
    addresses[lane] =
        address.is_wide
            ? warp.read<std::uint64_t>(address.slot)[lane] + offset
            : static_cast<std::uint32_t>(warp.read<std::uint32_t>(address.slot)[lane] + offset);
  }
  return addresses;
}

/// An instruction's place as checks of asynchronous instructions take it: its line of the PTX.
inline simt::SourceLine where(const Instruction& in) { return {"PTX", in.line}; }

/// Strong ones are such in global memory alone: elsewhere nothing tells them from others.
enum class Use : std::uint8_t { read, write, add, exchange, strong_read, strong_write };

/// The bytes of a lane's access, checked, noted and counted; null where it may not be carried out.
/// `value`: the bytes that a write brings, as two writes of equal values are no race.
std::byte* access(const Warp& warp, const Instruction& in, Space space, std::uint64_t address,
                  std::uint32_t lane, std::size_t bytes, Use use, const void* value = nullptr);
/// The same at the instruction's first address, in its space or the one that a generic address
/// says.
std::byte* access(const Warp& warp, const Instruction& in, std::uint32_t lane, std::size_t bytes,
                  Use use, const void* value = nullptr);

/// Where a byte of shared memory is, whatever is there.
std::byte* shared_pointer(const Warp& warp, std::uint64_t address);

}  // namespace attest::ptx
