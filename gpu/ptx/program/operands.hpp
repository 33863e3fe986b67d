#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "gpu/ptx/program/opcodes.hpp"

namespace attest::ptx {

/// Operand as a form asks for it.
struct OperandSpec {
  enum class Kind : std::uint8_t { value, vector, address, tensor, integer, label, targets };
  Kind kind = Kind::value;
  Type type = Type::b32;
  bool is_destination = false;
  bool may_be_wider = false;
  bool may_be_absent = false;
  bool is_second_of_pair = false;
  std::uint32_t count = 1;  // of a vector, or of coordinates
};

/// Reads a form's operands for one of its spellings.
std::vector<OperandSpec> operand_specs(const Spelling& spelling);

}  // namespace attest::ptx
