#pragma once

#include <vector>

#include "gpu/ptx/text/cursor.hpp"
#include "gpu/ptx/text/module.hpp"

/// Declarations: variables, parameters and registers.
namespace attest::ptx {

/// The state space that a directive names (".shared"); none for other words.
std::optional<Space> space_named(std::string_view directive);

/// Reads "align 4 .b8 name[16] = {0, 0, 128, 63};" after the directive of the space; a declaration
/// may name several variables.
std::vector<Variable> take_variables(Cursor& cursor, Space space, int scope);

/// Reads "(.param .u64 .ptr .global .align 16 a, .param .u32 n)".
std::vector<Variable> take_parameters(Cursor& cursor);

/// Reads ".b32 %r<78>, %x;" after .reg.
std::vector<Registers> take_registers(Cursor& cursor, int scope);

}  // namespace attest::ptx
