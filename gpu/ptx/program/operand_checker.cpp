#include "gpu/ptx/program/operand_checker.hpp"

#include <algorithm>
#include <string>

#include "core/text/suggest.hpp"

namespace attest::ptx {
namespace {

constexpr std::size_t kMostNegatable = 32;  // as many bits has Instruction::negated

// "a|b" are two operands, of which the form may have only the first.
std::vector<Operand> flattened(const Statement& statement, const std::vector<OperandSpec>& specs) {
  std::vector<Operand> all;
  for (const Operand& operand : statement.operands) {
    const bool takes_pair =
        all.size() + 1 < specs.size() && specs[all.size() + 1].is_second_of_pair;
    if (operand.kind == Operand::Kind::pair) {
      if (!takes_pair) refuse(operand.at, "'" + statement.opcode + "' takes no '|' here");
      all.insert(all.end(), operand.parts.begin(), operand.parts.end());
    } else {
      all.push_back(operand);
      if (takes_pair) all.emplace_back();  // a sink
    }
  }
  return all;
}

Rounding rounding_of(const Spelling& spelling) {
  if (spelling.has("rz") || spelling.has("rzi")) return Rounding::zero;
  if (spelling.has("rm") || spelling.has("rmi")) return Rounding::down;
  if (spelling.has("rp") || spelling.has("rpi")) return Rounding::up;
  return Rounding::nearest;
}

void note_memory(Instruction& in, const Spelling& spelling) {
  in.is_generic = true;
  const auto names = [&](Space space, const char* name, const char* also) {
    if (!spelling.has(name) && !spelling.has(also)) return;
    in.space = space;
    in.is_generic = false;
  };
  names(Space::global, "global", "global");
  names(Space::shared, "shared", "shared::cta");
  names(Space::shared, "shared::cluster", "shared::cluster");
  names(Space::local, "local", "local");
  names(Space::constant, "const", "const");
  names(Space::param, "param", "param::entry");
  const std::vector<Type> types = spelling.types();
  if (types.empty()) return;
  in.element_bytes = bits(types.back()) / 8;
  in.is_signed = info(types.back()).type_class == TypeClass::signed_integer;
}

}  // namespace

const Spelling& OperandChecker::choose(const Statement& statement,
                                       const std::vector<Spelling>& spellings) {
  const auto fits = [&](const Spelling& spelling) {
    const std::vector<OperandSpec> specs = operand_specs(spelling);
    std::size_t k = 0;
    for (const OperandSpec& spec : specs) {
      if (spec.is_second_of_pair) continue;
      if (k == statement.operands.size()) return spec.may_be_absent;
      const Operand& operand = statement.operands[k++];
      const std::size_t count =
          operand.kind == Operand::Kind::vector ? operand.parts.size() : std::size_t{1};
      const bool has_coordinates = spec.kind == OperandSpec::Kind::tensor;
      if (count != (has_coordinates ? 1 : spec.count)) return false;
    }
    return k == statement.operands.size();
  };
  const auto found = std::find_if(spellings.begin(), spellings.end(), fits);
  return found == spellings.end() ? spellings.front() : *found;
}

Instruction OperandChecker::check(const Statement& statement, const Spelling& spelling) {
  instruction_ = {};
  scope_ = statement.scope;
  instruction_.rounding = rounding_of(spelling);
  instruction_.ftz = spelling.has("ftz");
  instruction_.sat = spelling.has("sat");
  instruction_.of_device = !spelling.has("cta") && !spelling.has("cluster");
  instruction_.is_strong = spelling.has("relaxed") || spelling.has("acquire") ||
                           spelling.has("release") || spelling.has("volatile");
  instruction_.is_release =
      (spelling.has("release") || spelling.has("acq_rel")) && instruction_.of_device;
  instruction_.reach = reach_of(*spelling.form);
  note_memory(instruction_, spelling);
  if (statement.predicate) {
    const OperandSpec predicate{OperandSpec::Kind::value, Type::pred};
    instruction_.has_predicate = true;
    instruction_.is_predicate_negated = statement.predicate->negated;
    instruction_.predicate = value_slot(*statement.predicate, predicate);
  }
  const std::vector<OperandSpec> specs = operand_specs(spelling);
  const std::vector<Operand> operands = flattened(statement, specs);
  std::size_t least = 0;
  for (const OperandSpec& spec : specs) least += spec.may_be_absent ? 0 : 1;
  if (operands.size() < least || operands.size() > specs.size()) {
    refuse(statement.at, "'" + statement.opcode + "' has " + std::to_string(operands.size()) +
                             " operands; it takes: " + std::string(spelling.form->operands));
  }
  for (std::size_t k = 0; k < operands.size(); ++k) operand(operands[k], specs[k]);
  return instruction_;
}

void OperandChecker::add_slot(std::uint32_t slot, bool is_result, bool is_negated) {
  if (is_negated) instruction_.negated |= 1U << instruction_.slots.size();
  instruction_.slots.push_back(slot);
  instruction_.widths.push_back(width_);
  if (is_result) ++instruction_.results;
}

void OperandChecker::operand(const Operand& operand, const OperandSpec& spec) {
  switch (spec.kind) {
    case OperandSpec::Kind::address:
      return address(operand);
    case OperandSpec::Kind::tensor:
      return tensor(operand, spec);
    case OperandSpec::Kind::label:
      return label(operand);
    case OperandSpec::Kind::targets:
      return targets(operand);
    case OperandSpec::Kind::vector:
      return vector(operand, spec);
    case OperandSpec::Kind::integer:
      if (operand.kind != Operand::Kind::number || operand.value.kind != Literal::Kind::integer) {
        refuse(operand.at, "expected an integer constant");
      }
      instruction_.immediates.push_back(operand.value.bits);
      return;
    case OperandSpec::Kind::value:
      if (operand.negated && (spec.type != Type::pred || spec.is_destination)) {
        refuse(operand.at, "'!' belongs before predicates that are read");
      }
      if (operand.negated && instruction_.slots.size() >= kMostNegatable) {
        refuse(operand.at, "'!' is not carried out so far behind");
      }
      add_slot(value_slot(operand, spec), spec.is_destination, operand.negated);
      return;
  }
}

void OperandChecker::vector(const Operand& operand, const OperandSpec& spec) {
  const bool is_vector = operand.kind == Operand::Kind::vector;
  const std::size_t count = is_vector ? operand.parts.size() : 1;
  if (count != spec.count) {
    refuse(operand.at,
           std::to_string(count) + " registers where there must be " + std::to_string(spec.count));
  }
  instruction_.elements = spec.count;
  const auto add = [&](const Operand& part) {
    if (part.negated) refuse(part.at, "'!' belongs before predicates that are read");
    add_slot(value_slot(part, spec), spec.is_destination);
  };
  if (!is_vector) return add(operand);
  for (const Operand& part : operand.parts) add(part);
}

void OperandChecker::address(const Operand& operand) {
  if (operand.kind != Operand::Kind::address || !operand.parts.empty()) {
    refuse(operand.at, "expected an address such as [%rd1 + 4]");
  }
  Address address{registers_.constant(0, 64), true, operand.offset};
  if (!operand.name.empty()) {
    const Named& named = find(operand);
    if (const auto* const base = std::get_if<NamedRegister>(&named)) {
      if (bits(base->type) != 32 && bits(base->type) != 64) {
        refuse(operand.at, "'" + operand.name + "' has no 32 or 64 bits");
      }
      address.slot = base->slot;
      address.is_wide = bits(base->type) == 64;
    } else if (const auto* const variable = std::get_if<NamedVariable>(&named)) {
      // Parameters of calls are variables of the thread.
      if (instruction_.space == Space::param && variable->space == Space::local) {
        instruction_.space = Space::local;
      }
      const bool is_const_read =
          variable->space == Space::constant && instruction_.space == Space::constant;
      if (instruction_.is_generic || (variable->space != instruction_.space && !is_const_read)) {
        refuse(operand.at, "'" + operand.name + "' lies in another state space");
      }
      address.slot = registers_.constant(address_of(*variable), 64);
    } else if (const auto* const parameter = std::get_if<NamedParameter>(&named);
               parameter != nullptr && instruction_.space == Space::param &&
               !instruction_.is_generic) {
      const std::int64_t end =
          operand.offset +
          static_cast<std::int64_t>(instruction_.element_bytes * instruction_.elements);
      if (operand.offset < 0 || end > static_cast<std::int64_t>(parameter->bytes)) {
        refuse(operand.at,
               "'" + operand.name + "' has " + std::to_string(parameter->bytes) + " bytes");
      }
      address.offset += static_cast<std::int64_t>(parameter->offset);
    } else {
      refuse(operand.at, "'" + operand.name + "' is no address here");
    }
  }
  if (instruction_.space == Space::param && !instruction_.is_generic && operand.name.empty()) {
    refuse(operand.at, "a parameter is read by its name or by a register with its address");
  }
  instruction_.addresses.push_back(address);
}

void OperandChecker::tensor(const Operand& operand, const OperandSpec& spec) {
  if (operand.kind != Operand::Kind::address || operand.parts.size() != spec.count) {
    refuse(operand.at,
           "expected a tensor map with coordinates, " + std::to_string(spec.count) + " of them");
  }
  Operand map = operand;
  map.parts.clear();
  address(map);
  instruction_.elements = spec.count;
  for (const Operand& part : operand.parts) add_slot(value_slot(part, spec), false);
}

void OperandChecker::label(const Operand& operand) {
  if (operand.kind == Operand::Kind::name && !operand.negated) {
    const Named* const named = names_.find(scope_, operand.name);
    if (named != nullptr && std::holds_alternative<NamedLabel>(*named)) {
      instruction_.target = std::get<NamedLabel>(*named).statement;
      return;
    }
  }
  refuse(operand.at, "'" + operand.name + "' is no label of this function");
}

void OperandChecker::targets(const Operand& operand) {
  const Named* const named = names_.find(scope_, operand.name);
  if (named == nullptr || !std::holds_alternative<NamedTargets>(*named)) {
    refuse(operand.at, "'" + operand.name + "' is no list of labels (.branchtargets)");
  }
  const std::vector<std::size_t>& all = std::get<NamedTargets>(*named).statements;
  instruction_.immediates.assign(all.begin(), all.end());
}

const Named& OperandChecker::find(const Operand& operand) const {
  const Named* const named = names_.find(scope_, operand.name);
  if (named == nullptr) {
    refuse(operand.at,
           "'" + operand.name + "' is not declared" + did_you_mean(operand.name, names_.all()));
  }
  return *named;
}

}  // namespace attest::ptx
