#include "gpu/ptx/program/opcodes.hpp"

#include <algorithm>
#include <array>
#include <map>

#include "core/text/suggest.hpp"

namespace attest::ptx {
namespace {

// One part of a pattern: alternatives without their dots, of which one must or may be there.
struct Part {
  std::vector<std::string_view> alternatives;
  bool is_optional = false;
};

// "mul" for "mul.lo.s32" and for "mul(.lo|.hi).s32".
std::string_view name_of(std::string_view opcode) {
  return opcode.substr(0, opcode.find_first_of(".[("));
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::vector<Part> parts_of(std::string_view pattern) {
  std::vector<Part> parts;
  pattern.remove_prefix(name_of(pattern).size());
  while (!pattern.empty()) {
    Part part;
    if (pattern[0] == '.') {
      const std::size_t end = std::min(pattern.find_first_of(".[(", 1), pattern.size());
      part.alternatives.push_back(pattern.substr(1, end - 1));
      pattern.remove_prefix(end);
    } else {
      part.is_optional = pattern[0] == '[';
      const std::size_t end = pattern.find_first_of("])");
      for (const std::string_view each : split(pattern.substr(1, end - 1), '|')) {
        part.alternatives.push_back(each.substr(1));
      }
      pattern.remove_prefix(end + 1);
    }
    parts.push_back(std::move(part));
  }
  return parts;
}

struct KnownForm {
  const Form* form;
  std::vector<Part> parts;
};

// The forms of each name, with their patterns read.
const std::map<std::string_view, std::vector<KnownForm>>& known_forms() {
  static const auto all = [] {
    std::map<std::string_view, std::vector<KnownForm>> rows;
    for (const Family& family : families()) {
      for (const Form& form : family.forms) {
        rows[name_of(form.pattern)].push_back({&form, parts_of(form.pattern)});
      }
    }
    return rows;
  }();
  return all;
}

// How many modifiers a form takes, and whether these are all and enough.
struct Match {
  std::size_t taken = 0;
  bool is_whole = false;
};

Match match_parts(const std::vector<Part>& parts, std::span<const std::string_view> modifiers) {
  Match match;
  for (const Part& part : parts) {
    const bool fits = match.taken < modifiers.size() &&
                      std::find(part.alternatives.begin(), part.alternatives.end(),
                                modifiers[match.taken]) != part.alternatives.end();
    if (fits) {
      ++match.taken;
    } else if (!part.is_optional) {
      return match;
    }
  }
  match.is_whole = match.taken == modifiers.size();
  return match;
}

// Accesses are written with their space, scope and ordering in any order; PTX ISA has the ordering
// first, then the scope, then the space.
void order_access(std::vector<std::string_view>& modifiers) {
  const std::vector<std::vector<std::string_view>> kinds{
      {"weak", "volatile", "relaxed", "acquire", "release", "acq_rel"},
      {"cta", "cluster", "gpu", "sys"},
      {"param", "global", "shared", "shared::cta", "shared::cluster", "local", "const"}};
  const auto kind_of = [&](std::string_view modifier) {
    return std::find_if(kinds.begin(), kinds.end(),
                        [&](const auto& kind) {
                          return std::find(kind.begin(), kind.end(), modifier) != kind.end();
                        }) -
           kinds.begin();
  };
  std::stable_sort(modifiers.begin(), modifiers.end(),
                   [&](std::string_view a, std::string_view b) { return kind_of(a) < kind_of(b); });
}

std::vector<std::string_view> modifiers_of(std::string_view opcode) {
  std::vector<std::string_view> modifiers = split(opcode, '.');
  modifiers.erase(modifiers.begin());
  constexpr std::array kAccesses{"atom", "red", "ld", "st"};
  if (std::find(kAccesses.begin(), kAccesses.end(), name_of(opcode)) != kAccesses.end()) {
    order_access(modifiers);
  }
  return modifiers;
}

[[noreturn]] void refuse_name(std::string_view opcode, Position at) {
  std::vector<std::string> names;
  for (const auto& [name, forms] : known_forms()) names.emplace_back(name);
  refuse(at,
         "'" + std::string(opcode) + "' is not carried out" + did_you_mean(name_of(opcode), names));
}

}  // namespace

bool Spelling::has(std::string_view modifier) const {
  return std::find(modifiers.begin(), modifiers.end(), modifier) != modifiers.end();
}

std::vector<Type> Spelling::types() const {
  std::vector<Type> types;
  for (const std::string_view modifier : modifiers) {
    if (const auto type = type_named(modifier)) types.push_back(*type);
  }
  return types;
}

std::span<const Family> families() {
  static const Family all[] = {
      {"Integer arithmetic", Reach::lane, integer_forms()},
      {"Integer arithmetic of several words", Reach::beyond, carry_forms()},
      {"Bits, shifts and fields", Reach::lane, bit_forms()},
      {"Floating-point arithmetic, rounded once", Reach::lane, floating_forms()},
      {"Arithmetic of f16 and bf16, rounded once", Reach::lane, half_forms()},
      {"Approximations, rounded to the nearest", Reach::lane, approximate_forms()},
      {"Approximations of f16 and bf16, rounded to the nearest", Reach::lane,
       half_approximation_forms()},
      {"Comparisons and selections", Reach::lane, comparison_forms()},
      {"Conversions", Reach::lane, conversion_forms()},
      {"Conversions to pairs of 16-bit floats", Reach::lane, half_pair_forms()},
      {"Conversions of pairs of 8-bit floats", Reach::lane, eight_bit_forms()},
      {"Moves and addresses", Reach::lane, move_forms()},
      {"Loads and stores", Reach::beyond, memory_forms()},
      {"Atomic operations", Reach::beyond, atomic_forms()},
      {"Exchange between the lanes of a warp", Reach::warp, exchange_forms()},
      {"Asynchronous copies", Reach::beyond, async_copy_forms()},
      {"Matrices", Reach::warp, matrix_forms()},
      {"Products of matrices of 8 bits, or summed in f16", Reach::warp, small_product_forms()},
      {"Barriers in shared memory, fences of asynchronous instructions", Reach::beyond,
       mbarrier_forms()},
      {"Copies of tensors and rows", Reach::beyond, bulk_copy_forms()},
      {"Matrix products of a warpgroup", Reach::beyond, group_product_forms()},
      {"Clusters, each of one block", Reach::beyond, cluster_forms()},
      {"Control flow, barriers and fences", Reach::beyond, control_forms()},
  };
  return all;
}

Reach reach_of(const Form& form) {
  for (const Family& family : families()) {
    const auto* const begin = family.forms.data();
    if (&form >= begin && &form < begin + family.forms.size()) return family.reach;
  }
  return Reach::beyond;
}

std::vector<Spelling> match(std::string_view opcode, Position at) {
  std::vector<Spelling> all;
  const std::vector<std::string_view> modifiers = modifiers_of(opcode);
  const auto known = known_forms().find(name_of(opcode));
  if (known == known_forms().end()) refuse_name(opcode, at);
  const Form* nearest_form = nullptr;
  std::size_t most_taken = 0;
  for (const KnownForm& each : known->second) {
    const Match found = match_parts(each.parts, modifiers);
    if (found.is_whole) all.push_back({each.form, modifiers});
    if (nearest_form == nullptr || found.taken > most_taken) nearest_form = each.form;
    most_taken = std::max(most_taken, found.taken);
  }
  if (!all.empty()) return all;
  const std::string wrong = most_taken < modifiers.size()
                                ? "'." + std::string(modifiers[most_taken]) + "' there"
                                : "it without more modifiers";
  refuse(at, "'" + std::string(opcode) + "' is not carried out, for " + wrong +
                 "; the nearest form is " + std::string(nearest_form->pattern));
}

std::vector<std::string> spellings(const Form& form) {
  std::vector<std::string> all{std::string(name_of(form.pattern))};
  for (const Part& part : parts_of(form.pattern)) {
    std::vector<std::string> longer;
    for (const std::string& begin : all) {
      if (part.is_optional) longer.push_back(begin);
      for (const std::string_view each : part.alternatives) {
        longer.push_back(begin + "." + std::string(each));
      }
    }
    all = std::move(longer);
  }
  return all;
}

}  // namespace attest::ptx
