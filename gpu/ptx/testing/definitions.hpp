#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gpu/ptx/program/opcodes.hpp"

/// Instructions defined once more, by PTX ISA's words and by MPFR: nothing of these is shared with
/// the executor.
namespace attest::ptx::testing {

using Bits = std::vector<std::uint64_t>;  // of the sources, in their order

/// The bits of the result; throws InternalError for an opcode without a definition.
std::uint64_t defined_integer(const Spelling& spelling, const Bits& sources);
std::uint64_t defined_bits(const Spelling& spelling, const Bits& sources);
std::uint64_t defined_float(const Spelling& spelling, const Bits& sources);
std::uint64_t defined_half(const Spelling& spelling, const Bits& sources);
std::uint64_t defined_comparison(const Spelling& spelling, const Bits& sources);
std::uint64_t defined_conversion(const Spelling& spelling, const Bits& sources);

/// The name before the first dot.
std::string name_of(const Spelling& spelling);

/// An integer of a type, from its bits.
__int128 integer_of(std::uint64_t bits, Type type);

/// A number of a floating-point type from its bits, read field by field.
double value_of(std::uint64_t bits, Type type);
bool is_nan(std::uint64_t bits, Type type);

}  // namespace attest::ptx::testing
