#pragma once

#include "gpu/ptx/program/names.hpp"
#include "gpu/ptx/program/operands.hpp"
#include "gpu/ptx/program/program.hpp"
#include "gpu/ptx/program/register_file.hpp"

namespace attest::ptx {

/// Holds a statement's operands against what its form asks for, and gives each its slots.
class OperandChecker {
 public:
  OperandChecker(const Names& names, RegisterFile& registers, Program& program)
      : names_(names), registers_(registers), program_(program) {}

  /// Returns the first of an opcode's forms whose operands look like the statement's.
  static const Spelling& choose(const Statement& statement, const std::vector<Spelling>& spellings);

  Instruction check(const Statement& statement, const Spelling& spelling);

 private:
  void operand(const Operand& operand, const OperandSpec& spec);
  void vector(const Operand& operand, const OperandSpec& spec);
  void address(const Operand& operand);
  void tensor(const Operand& operand, const OperandSpec& spec);
  void label(const Operand& operand);
  void targets(const Operand& operand);
  void add_slot(std::uint32_t slot, bool is_result, bool is_negated = false);

  std::uint32_t value_slot(const Operand& operand, const OperandSpec& spec);
  std::uint32_t register_slot(const NamedRegister& named, const Operand& operand,
                              const OperandSpec& spec);
  std::uint32_t variable_slot(const NamedVariable& named, const Operand& operand,
                              const OperandSpec& spec);
  std::uint32_t special_slot(Special special, const Operand& operand, const OperandSpec& spec);
  std::uint32_t constant_slot(const Operand& operand, const OperandSpec& spec);
  std::uint64_t address_of(const NamedVariable& named) const;
  const Named& find(const Operand& operand) const;

  const Names& names_;
  RegisterFile& registers_;
  Program& program_;
  Instruction instruction_;
  int scope_ = 0;
  std::uint32_t width_ = 0;  // of the latest value's register, in bytes
};

}  // namespace attest::ptx
