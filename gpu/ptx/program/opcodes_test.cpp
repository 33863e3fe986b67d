#include "gpu/ptx/program/opcodes.hpp"

#include <algorithm>
#include <cmath>
#include <span>

#include "core/error.hpp"
#include "core/testing/catch.hpp"
#include "gpu/ptx/program/operands.hpp"
#include "gpu/ptx/testing/definitions.hpp"
#include "gpu/ptx/testing/opcode_runner.hpp"

/// Each spelling of each form is executed on edge values and held against an independent
/// definition.
namespace attest::ptx {
namespace {

using testing::Bits;

struct Call {
  std::vector<Type> types;  // of the result and of each source
  bool has_constant = false;
};

Call call_of(const Spelling& spelling) {
  Call call;
  for (const OperandSpec& spec : operand_specs(spelling)) {
    if (spec.is_second_of_pair) continue;
    if (spec.kind == OperandSpec::Kind::integer) {
      call.has_constant = true;
    } else {
      call.types.push_back(spec.type);
    }
  }
  return call;
}

// Where the result's NaN has no bits of its own: f64, and signs alone.
bool is_same(std::uint64_t result, std::uint64_t expected, Type type) {
  if (result == expected) return true;
  if (type == Type::f16x2 || type == Type::bf16x2) {
    const Type half = type == Type::f16x2 ? Type::f16 : Type::bf16;
    return is_same(result & 0xFFFF, expected & 0xFFFF, half) &&
           is_same(result >> 16, expected >> 16, half);
  }
  const bool is_float = info(type).type_class == TypeClass::floating;
  return is_float && testing::is_nan(result, type) && testing::is_nan(expected, type);
}

std::uint64_t masked(std::uint64_t value, Type type) {
  const std::uint32_t width = bits(type) == 8 ? 16 : bits(type);  // of the register
  return width == 64 ? value : value & ((std::uint64_t{1} << width) - 1);
}

using Definition = std::uint64_t (*)(const Spelling&, const Bits&);

void hold_against(const Spelling& spelling, const std::string& opcode, Definition definition,
                  std::uint64_t constant) {
  const Call call = call_of(spelling);
  const auto operands = testing::edge_operands({call.types.begin() + 1, call.types.end()});
  const auto results = testing::results_of(opcode, call.types, operands,
                                           call.has_constant ? std::to_string(constant) : "");
  std::size_t wrong = 0;
  for (std::size_t k = 0; k < results.size(); ++k) {
    Bits sources;
    for (const auto& each : operands) sources.push_back(each[k]);
    if (call.has_constant) sources.push_back(constant);
    const std::uint64_t expected = definition(spelling, sources);
    if (is_same(masked(results[k], call.types[0]), masked(expected, call.types[0]),
                call.types[0])) {
      continue;
    }
    if (++wrong > 3) continue;
    INFO(opcode << " of " << std::hex << sources[0] << ", " << (sources.size() > 1 ? sources[1] : 0)
                << ", " << (sources.size() > 2 ? sources[2] : 0) << ": " << results[k] << ", not "
                << expected);
    CHECK(false);
  }
  CHECK(wrong == 0);
}

void hold_family(std::span<const Form> family, Definition definition) {
  for (const Form& form : family) {
    for (const std::string& opcode : spellings(form)) {
      const std::vector<Spelling> found = match(opcode, {});
      const auto own = std::find_if(found.begin(), found.end(),
                                    [&](const Spelling& each) { return each.form == &form; });
      REQUIRE(own != found.end());
      const bool has_constant = call_of(*own).has_constant;
      for (const std::uint64_t constant : has_constant ? Bits{0x00, 0xE8, 0x96, 0xFF} : Bits{0}) {
        hold_against(*own, opcode, definition, constant);
      }
    }
  }
}

TEST_CASE("integer arithmetic is as defined", "[ptx]") {
  hold_family(integer_forms(), testing::defined_integer);
}
TEST_CASE("operations on bits are as defined", "[ptx]") {
  hold_family(bit_forms(), testing::defined_bits);
}
TEST_CASE("floating-point arithmetic is rounded once", "[ptx]") {
  hold_family(floating_forms(), testing::defined_float);
}
TEST_CASE("arithmetic of 16 bits is rounded once", "[ptx]") {
  hold_family(half_forms(), testing::defined_half);
}

// Two values in one register, each as one alone.
std::uint64_t defined_conversions(const Spelling& spelling, const Bits& sources) {
  if (sources.size() == 1) {
    const std::uint64_t result = testing::defined_conversion(spelling, sources);
    const Type to = spelling.first_type();
    if (bits(to) != 8) return result;  // of 8 bits: with zeros or its sign in a register of 16
    return static_cast<std::uint16_t>(testing::integer_of(result, to));
  }
  Spelling one = spelling;
  for (std::string_view& each : one.modifiers) {
    if (each == "f16x2") each = "f16";
    if (each == "bf16x2") each = "bf16";
  }
  const auto result_of = [&](std::uint64_t source) -> std::uint64_t {
    const double value = testing::value_of(source, Type::f32);
    return spelling.has("relu") && value <= 0.0 ? 0 : testing::defined_conversion(one, {source});
  };
  return result_of(sources[0]) << 16 | result_of(sources[1]);
}
TEST_CASE("conversions are rounded once", "[ptx]") {
  hold_family(conversion_forms(), defined_conversions);
  hold_family(half_pair_forms(), defined_conversions);
}
TEST_CASE("comparisons and selections are as defined", "[ptx]") {
  hold_family(comparison_forms(), testing::defined_comparison);
}

}  // namespace
}  // namespace attest::ptx
