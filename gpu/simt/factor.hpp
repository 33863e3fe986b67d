#pragma once

#include <cstdint>

namespace attest::simt {

/// Types of a product's factors: a register has two of 16 bits, the first in the low half, or one.
enum class Factor : std::uint8_t { bf16, f16, tf32 };

}  // namespace attest::simt
