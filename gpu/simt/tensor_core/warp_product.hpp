#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "gpu/simt/tensor_core/factor.hpp"

namespace attest::simt {

/// Registers of a warp for D = A B + C, 16 x 16 by 16 x 8 or less deep, each with 32 lanes in a
/// row.
///
/// Lane 4 i + j has of A rows i and i + 8 in turns, of B column i, and of both each fourth
/// register's worth of k from j on; of C and D columns 2 j and 2 j + 1 of row i, then of row i + 8.
/// (PTX ISA, matrix fragments for mma.)
struct WarpProduct {
  std::array<const std::uint32_t*, 4> a{};
  std::array<const std::uint32_t*, 2> b{};
  std::array<const float*, 4> c{};
  std::array<float*, 4> d{};  // may be those of C

  /// In the tensor core's arithmetic: exact products, summed with more than float32's bits in the
  /// order of k, then rounded once.
  void multiply(Factor type, std::size_t depth) const;
};

}  // namespace attest::simt
