#include "gpu/ptx/program/operands.hpp"

#include <charconv>
#include <string>

#include "core/error.hpp"

namespace attest::ptx {
namespace {

Type twice_as_wide(Type type) {
  const std::string name(info(type).name);
  const auto wide = type_named(name.substr(0, 1) + std::to_string(2 * bits(type)));
  if (!wide) throw InternalError("no type is twice as wide as " + name);
  return *wide;
}

// The type after the colon, or the opcode's.
Type type_of(std::string_view name, bool is_destination, const Spelling& spelling) {
  if (name.empty()) return is_destination ? spelling.first_type() : spelling.last_type();
  if (name == "first") return spelling.first_type();
  if (name == "wide") return twice_as_wide(spelling.last_type());
  const auto type = type_named(name);
  if (!type) throw InternalError("form with unknown type " + std::string(name));
  return *type;
}

std::uint32_t elements_of(const Spelling& spelling) {
  if (spelling.has("v4") || spelling.has("x4")) return 4;
  return spelling.has("v2") || spelling.has("x2") ? 2 : 1;
}

// "2d" has two.
std::uint32_t dimensions_of(const Spelling& spelling) {
  for (std::uint32_t count = 1; count <= 5; ++count) {
    if (spelling.has(std::to_string(count) + "d")) return count;
  }
  return 0;
}

// A lane's of a product with so many columns: "m64n96k16" has 48.
std::uint32_t accumulators_of(const Spelling& spelling) {
  std::uint32_t columns = 0;
  for (const std::string_view modifier : spelling.modifiers) {
    if (!modifier.starts_with("m64n")) continue;
    std::from_chars(modifier.data() + 4, modifier.data() + modifier.size(), columns);
  }
  return columns / 2;
}

OperandSpec spec_of(std::string_view word, const Spelling& spelling) {
  OperandSpec spec;
  const auto skip_end = [&word](char c) {
    const bool has = word.ends_with(c);
    if (has) word.remove_suffix(1);
    return has;
  };
  spec.may_be_absent = skip_end('?');
  if (word.starts_with('|')) {
    spec.is_second_of_pair = spec.is_destination = spec.may_be_absent = true;
    spec.type = Type::pred;
    return spec;
  }
  if (word == "L") spec.kind = OperandSpec::Kind::label;
  if (word == "T") spec.kind = OperandSpec::Kind::targets;
  if (word.starts_with('#')) spec.kind = OperandSpec::Kind::integer;
  if (word.starts_with('[')) spec.kind = OperandSpec::Kind::address;
  if (word.starts_with('[') && word.find(',') != std::string_view::npos) {
    spec.kind = OperandSpec::Kind::tensor;
    spec.count = dimensions_of(spelling);
    spec.type = Type::s32;
  }
  if (spec.kind != OperandSpec::Kind::value) return spec;
  if (word.starts_with('{')) {
    spec.kind = OperandSpec::Kind::vector;
    spec.count = elements_of(spelling);
    word.remove_prefix(1);
    skip_end('}');
    if (const std::size_t star = word.find('*'); star != std::string_view::npos) {
      const std::string_view count = word.substr(star + 1);
      if (count == "n") {
        spec.count = accumulators_of(spelling);
      } else if (count == "h") {
        spec.count = accumulators_of(spelling) / 2;
      } else {
        std::from_chars(count.data(), count.data() + count.size(), spec.count);
      }
      word = word.substr(0, star);
    }
  }
  spec.may_be_wider = skip_end('+');
  spec.is_destination = word.starts_with('d');
  const std::size_t colon = word.find(':');
  spec.type = type_of(colon == std::string_view::npos ? "" : word.substr(colon + 1),
                      spec.is_destination, spelling);
  return spec;
}

}  // namespace

std::vector<OperandSpec> operand_specs(const Spelling& spelling) {
  std::vector<OperandSpec> specs;
  std::string_view rest = spelling.form->operands;
  while (!rest.empty()) {
    const std::size_t end = rest.find(' ');
    specs.push_back(spec_of(rest.substr(0, end), spelling));
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  }
  return specs;
}

}  // namespace attest::ptx
