#pragma once

#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/ptx/text/position.hpp"
#include "gpu/ptx/text/types.hpp"

/// Instructions that are carried out: one row for each form, an allow-list of whole spellings.
namespace attest::ptx {

class Warp;
struct Instruction;
struct Form;

/// Carries out an instruction for the lanes of the warp's mask.
using Execute = void (*)(Warp& warp, const Instruction& instruction);

/// An opcode with its modifiers, as a form matched it.
struct Spelling {
  const Form* form = nullptr;
  std::vector<std::string_view> modifiers;  // without dots

  bool has(std::string_view modifier) const;
  /// Types among the modifiers, in their order.
  std::vector<Type> types() const;
  Type first_type() const { return types().front(); }
  Type last_type() const { return types().back(); }
};

/// The largest error that PTX ISA 9.1 lets a device make, the greatest of three: units in the last
/// place of the nearest result, and powers of two, relative to the exact value and absolute.
struct AllowedError {
  static constexpr double kNone = -std::numeric_limits<double>::infinity();
  double ulps = 0.0, relative = kNone, absolute = kNone;
};

/// `pattern`: "add[.rn|.rz|.rm|.rp][.ftz].f32", an alternative of round brackets must be there, one
/// of square brackets may.
///
/// `operands`: "d a b" with a type where it is none of the opcode's ("b:u32"): destinations have
/// its first type, others its last. "d+": the register may be wider. "{d}": as many as .v2 and .v4
/// say;
/// "{d:b32*4}": four, "*n": the accumulators of a wgmma, "*h": those of f16, two in each. "[a]" an
/// address, "[a,c]" one of a tensor with coordinates, "#i" an integer, "L" a label, "T" a list of
/// them, "|p" a predicate in the same operand, "?" one that may be absent.
struct Form {
  std::string_view pattern;
  std::string_view operands;
  /// Returns how to carry a spelling out; may set the instruction's variant.
  Execute (*make)(const Spelling& spelling, Instruction& instruction);
  AllowedError error = {};  // none but of approximations
};

/// The `make` of a form that is carried out in one way, whatever its spelling.
template <Execute kExecute>
Execute as(const Spelling&, Instruction&) {
  return kExecute;
}

/// How far what an instruction reads from registers reaches: its results of the same lane, those of
/// the whole warp, or beyond its results.
enum class Reach : std::uint8_t { lane, warp, beyond };

/// Forms that belong together, in a file of their own.
struct Family {
  std::string_view title;
  Reach reach;
  std::span<const Form> forms;
};

/// All families: the table that programs are checked against.
std::span<const Family> families();
Reach reach_of(const Form& form);

/// The table as a page, docs/reference/ptx-opcodes.md.
/// [gpu/ptx/program/opcode_page_test "the page of opcodes is the table"]
std::string opcode_page();

/// The forms that an opcode has; several differ in their operands. Throws InvalidProblem with the
/// nearest known one otherwise: an unknown modifier is never guessed at.
/// [gpu/ptx/program/opcodes_test]
std::vector<Spelling> match(std::string_view opcode, Position at);

/// Every spelling that a form has. [gpu/ptx/program/opcodes_test]
std::vector<std::string> spellings(const Form& form);

std::span<const Form> integer_forms();
std::span<const Form> carry_forms();
std::span<const Form> bit_forms();
std::span<const Form> floating_forms();
std::span<const Form> half_forms();
std::span<const Form> approximate_forms();
std::span<const Form> half_approximation_forms();
std::span<const Form> comparison_forms();
std::span<const Form> conversion_forms();
std::span<const Form> half_pair_forms();
std::span<const Form> eight_bit_forms();
std::span<const Form> move_forms();
std::span<const Form> memory_forms();
std::span<const Form> atomic_forms();
std::span<const Form> exchange_forms();
std::span<const Form> async_copy_forms();
std::span<const Form> matrix_forms();
std::span<const Form> small_product_forms();
std::span<const Form> mbarrier_forms();
std::span<const Form> bulk_copy_forms();
std::span<const Form> group_product_forms();
std::span<const Form> cluster_forms();
std::span<const Form> control_forms();

}  // namespace attest::ptx
