#include "gpu/ptx/text/declarations.hpp"

#include <array>
#include <bit>

namespace attest::ptx {
namespace {

constexpr std::uint64_t kMostAlignment = 1024;
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 32;  // of a variable
constexpr std::uint64_t kMostRegisters = std::uint64_t{1} << 16;

struct SpaceName {
  std::string_view directive;
  Space space;
};
constexpr std::array kSpaces{SpaceName{".param", Space::param}, SpaceName{".global", Space::global},
                             SpaceName{".shared", Space::shared}, SpaceName{".local", Space::local},
                             SpaceName{".const", Space::constant}};

Type take_type(Cursor& cursor) {
  const std::string_view text = cursor.peek().text;
  const auto type = text.starts_with('.') ? type_named(text.substr(1)) : std::nullopt;
  if (!type) cursor.refuse_here("a type such as .b32");
  cursor.take_word("a type");
  return *type;
}

std::uint64_t take_alignment(Cursor& cursor) {
  const std::uint64_t alignment = cursor.take_integer("an alignment", kMostAlignment);
  if (!std::has_single_bit(alignment)) cursor.refuse_here("an alignment that is a power of two");
  return alignment;
}

// "[4][16]"; 0 for "[]".
void take_extents(Cursor& cursor, Variable& variable) {
  const std::uint64_t most = kMostBytes / bytes(variable.type);
  if (cursor.peek().is("[") && cursor.peek(1).is("]")) {
    cursor.take("[");
    cursor.take("]");
    variable.elements = 0;
    return;
  }
  while (cursor.skip("[")) {
    const std::uint64_t extent = cursor.take_integer("an extent", most);
    if (extent == 0) cursor.refuse_here("an extent of at least 1");
    variable.elements *= extent;
    if (variable.elements > most) cursor.refuse_here("an array of at most 4 GiB");
    cursor.take("]");
  }
}

void take_values(Cursor& cursor, Variable& variable) {
  const auto take_value = [&] {
    if (cursor.peek().kind == Token::Kind::word) {
      cursor.refuse_here("a number (addresses in initialisers are not carried out)");
    }
    const Literal value = cursor.take_number();
    variable.values.push_back(value.bits);
    if (variable.values.size() > std::max<std::uint64_t>(variable.elements, 1)) {
      cursor.refuse_here("no more values than the array has elements");
    }
  };
  if (!cursor.skip("{")) return take_value();
  do {
    take_value();
  } while (cursor.skip(","));
  cursor.take("}");
}

Type take_sized_type(Cursor& cursor) {
  const Position at = cursor.at();
  const Type type = take_type(cursor);
  if (type == Type::pred) refuse(at, "predicates have no place in memory");
  return type;
}

Variable take_parameter(Cursor& cursor) {
  cursor.take(".param");
  Variable variable;
  variable.at = cursor.at();
  bool aligned = false;
  if (cursor.skip(".align")) {
    variable.alignment = take_alignment(cursor);
    aligned = true;
  }
  variable.type = take_sized_type(cursor);
  if (cursor.skip(".ptr")) {
    if (space_named(cursor.peek().text)) cursor.take_word("a state space");
    if (cursor.skip(".align")) take_alignment(cursor);  // of what it points to
  }
  if (!aligned) variable.alignment = bytes(variable.type);
  variable.name = cursor.take_name("a parameter's name");
  take_extents(cursor, variable);
  return variable;
}

}  // namespace

std::optional<Space> space_named(std::string_view directive) {
  for (const SpaceName& each : kSpaces) {
    if (each.directive == directive) return each.space;
  }
  return std::nullopt;
}

std::vector<Variable> take_variables(Cursor& cursor, Space space, int scope) {
  std::uint64_t alignment = 0;
  if (cursor.skip(".align")) alignment = take_alignment(cursor);
  const Type type = take_sized_type(cursor);
  std::vector<Variable> variables;
  do {
    Variable variable;
    variable.space = space;
    variable.type = type;
    variable.alignment = alignment == 0 ? bytes(type) : alignment;
    variable.scope = scope;
    variable.at = cursor.at();
    variable.name = cursor.take_name("a variable's name");
    take_extents(cursor, variable);
    if (cursor.peek().is("=") && space != Space::global && space != Space::constant) {
      cursor.refuse_here("';' (variables of blocks and threads have no initial values)");
    }
    if (cursor.skip("=")) take_values(cursor, variable);
    variables.push_back(std::move(variable));
  } while (cursor.skip(","));
  cursor.take(";");
  return variables;
}

std::vector<Variable> take_parameters(Cursor& cursor) {
  std::vector<Variable> parameters;
  cursor.take("(");
  if (cursor.skip(")")) return parameters;
  do {
    parameters.push_back(take_parameter(cursor));
  } while (cursor.skip(","));
  cursor.take(")");
  return parameters;
}

std::vector<Registers> take_registers(Cursor& cursor, int scope) {
  const Type type = take_type(cursor);
  std::vector<Registers> all;
  do {
    Registers registers{type, "", std::nullopt, scope, cursor.at()};
    registers.name = cursor.take_name("a register's name");
    if (cursor.skip("<")) {
      registers.count =
          static_cast<std::uint32_t>(cursor.take_integer("a number of registers", kMostRegisters));
      cursor.take(">");
    }
    all.push_back(std::move(registers));
  } while (cursor.skip(","));
  cursor.take(";");
  return all;
}

}  // namespace attest::ptx
