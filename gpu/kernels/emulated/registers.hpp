#pragma once

#include <cstdint>
#include <type_traits>

#include "gpu/kernels/emulated/kernel_name.hpp"

/// How many registers a lane of a tile's kernel has.
namespace attest::gpu {

enum class Registers : std::uint8_t { as_compiled, held };

/// A tile whose kernels are held to 128 registers a lane, as those of square tiles are: so many
/// blocks share a multiprocessor's 65536.
template <class Tile>
struct Held : Tile {
  static constexpr int kBlocks = 65536 / (128 * Tile::kLanes);

  static std::string name() { return kernel_name("Held", Tile::name()); }
};

template <class Tile, Registers kRegisters>
using WithRegisters = std::conditional_t<kRegisters == Registers::held, Held<Tile>, Tile>;

}  // namespace attest::gpu
