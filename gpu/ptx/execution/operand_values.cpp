// Values of operands: registers, constants, addresses of variables and special registers.
#include <algorithm>
#include <bit>
#include <string>

#include "gpu/ptx/execution/special_registers.hpp"
#include "gpu/ptx/program/operand_checker.hpp"

namespace attest::ptx {
namespace {

std::string text_of(Type type) { return "." + std::string(info(type).name); }

}  // namespace

std::uint32_t OperandChecker::value_slot(const Operand& operand, const OperandSpec& spec) {
  switch (operand.kind) {
    case Operand::Kind::sink:
      if (!spec.is_destination) refuse(operand.at, "'_' takes results; here a value is read");
      width_ = bits(spec.type) / 8;
      return registers_.sink();
    case Operand::Kind::number:
      if (spec.is_destination) refuse(operand.at, "a number takes no result");
      return constant_slot(operand, spec);
    case Operand::Kind::name:
      break;
    default:
      refuse(operand.at, "expected one register or number");
  }
  if (const auto special = special_named(operand.name))
    return special_slot(*special, operand, spec);
  const Named& named = find(operand);
  if (const auto* const found = std::get_if<NamedRegister>(&named)) {
    return register_slot(*found, operand, spec);
  }
  if (const auto* const found = std::get_if<NamedVariable>(&named)) {
    return variable_slot(*found, operand, spec);
  }
  const auto* const parameter = std::get_if<NamedParameter>(&named);
  if (parameter != nullptr && !spec.is_destination && bits(spec.type) == 64) {
    width_ = sizeof(std::uint64_t);
    return registers_.constant(parameter->offset, 64);
  }
  refuse(operand.at, "'" + operand.name + "' is neither a register nor a variable");
}

std::uint32_t OperandChecker::register_slot(const NamedRegister& named, const Operand& operand,
                                            const OperandSpec& spec) {
  const bool both_or_none = (named.type == Type::pred) == (spec.type == Type::pred);
  const bool fits = bits(named.type) == bits(spec.type) ||
                    (spec.may_be_wider && bits(named.type) > bits(spec.type));
  if (!both_or_none || !fits) {
    refuse(operand.at, "'" + operand.name + "' is declared as " + text_of(named.type) +
                           "; this operand takes " + text_of(spec.type));
  }
  width_ = bits(named.type) / 8;
  return named.slot;
}

std::uint64_t OperandChecker::address_of(const NamedVariable& named) const {
  return named.is_extern_shared ? program_.extern_shared_offset() : named.address;
}

std::uint32_t OperandChecker::variable_slot(const NamedVariable& named, const Operand& operand,
                                            const OperandSpec& spec) {
  const bool is_narrow = named.space == Space::shared || named.space == Space::local;
  if (spec.is_destination || (bits(spec.type) != 64 && !(is_narrow && bits(spec.type) == 32))) {
    refuse(operand.at, "the address of '" + operand.name + "' does not fit here");
  }
  width_ = bits(spec.type) / 8;
  return registers_.constant(address_of(named), bits(spec.type));
}

std::uint32_t OperandChecker::special_slot(Special special, const Operand& operand,
                                           const OperandSpec& spec) {
  if (spec.is_destination || bits(spec.type) != 32) {
    refuse(operand.at, "'" + operand.name + "' is read, with 32 bits");
  }
  width_ = sizeof(std::uint32_t);
  for (const Program::SpecialSlot& known : program_.specials) {
    if (known.special == special) return known.slot;
  }
  const std::uint32_t slot = registers_.add(Type::b32);
  program_.specials.push_back({special, slot});
  return slot;
}

std::uint32_t OperandChecker::constant_slot(const Operand& operand, const OperandSpec& spec) {
  const Literal value = operand.value;
  const TypeClass type_class = info(spec.type).type_class;
  if (spec.type == Type::pred) return registers_.constant_predicate(value.bits != 0);
  const std::uint32_t width = std::max(bits(spec.type), 16U);  // as registers have at least
  width_ = width / 8;
  const bool is_f32 = value.kind == Literal::Kind::f32;
  if (value.kind == Literal::Kind::integer) {
    if (type_class == TypeClass::floating && value.bits != 0) {
      refuse(operand.at, "an integer where " + text_of(spec.type) + " is read; write 0f…");
    }
    const std::uint64_t all = width == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << width) - 1;
    const auto number = static_cast<std::int64_t>(value.bits);
    if (value.bits > all && (number >= 0 || number < -static_cast<std::int64_t>(all / 2) - 1)) {
      refuse(operand.at, "a number of more than " + std::to_string(width) + " bits");
    }
    return registers_.constant(value.bits & all, width);
  }
  if (type_class == TypeClass::signed_integer || type_class == TypeClass::unsigned_integer) {
    refuse(operand.at, "a floating-point number where " + text_of(spec.type) + " is read");
  }
  if (!is_f32 && width == 32 && type_class == TypeClass::floating) {
    const auto narrow = static_cast<float>(std::bit_cast<double>(value.bits));
    return registers_.constant(std::bit_cast<std::uint32_t>(narrow), 32);
  }
  if (width != (is_f32 ? 32U : 64U)) {
    refuse(operand.at, "a number of another width than " + text_of(spec.type));
  }
  return registers_.constant(value.bits, width);
}

}  // namespace attest::ptx
