#pragma once

#include <cstdint>

namespace attest::ptx {

/// Results of approximations (ex2.approx, …): the nearest number, or one about as far from the
/// exact value as PTX ISA lets a device be. A kernel whose verdict differs depends on more than PTX
/// promises.
enum class Approximation : std::uint8_t { nearest, farthest };

/// Choices that PTX ISA leaves to a device, and a limit of the executor.
struct Choices {
  Approximation approximation = Approximation::nearest;
  /// Warp instructions that a block may execute before it is given up as endless.
  std::uint64_t most_instructions = std::uint64_t{1} << 34;
};

}  // namespace attest::ptx
