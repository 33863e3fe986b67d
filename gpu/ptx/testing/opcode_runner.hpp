#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gpu/ptx/execution/choices.hpp"
#include "gpu/ptx/text/types.hpp"

namespace attest::ptx::testing {

/// Runs one instruction through parser, checker and executor, for many operands at once.
///
/// `types`: of the destination and of each source; `operands[k]`: the bits of source k of each
/// call. Returns the bits of the destination, a predicate as 0 or 1.
std::vector<std::uint64_t> results_of(const std::string& opcode, const std::vector<Type>& types,
                                      const std::vector<std::vector<std::uint64_t>>& operands,
                                      const std::string& last_operand = "",
                                      const Choices& choices = {});

/// Numbers at which a type's arithmetic has its edges, as bits.
std::vector<std::uint64_t> edge_values(Type type);

/// All combinations of edge values of those types, for `results_of`.
std::vector<std::vector<std::uint64_t>> edge_operands(const std::vector<Type>& sources);

}  // namespace attest::ptx::testing
