#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <iterator>
#include <string>
#include <utility>

#include "gpu/ptx/execution/block_run.hpp"

/// wgmma: matrix products of a warpgroup.
namespace attest::ptx {
namespace {

constexpr std::uint32_t kMostColumns = 256, kColumnStep = 8;

// A product as the instruction's spelling and constants say it, in its variant.
std::uint32_t encoded(const simt::GroupProduct& product) {
  return product.columns | static_cast<std::uint32_t>(product.type) << 16 |
         static_cast<std::uint32_t>(product.a_major) << 20 |
         static_cast<std::uint32_t>(product.b_major) << 21 |
         static_cast<std::uint32_t>(product.a_in_registers) << 22 |
         static_cast<std::uint32_t>(product.is_negative) << 23 |
         static_cast<std::uint32_t>(product.has_half_sums) << 24 |
         static_cast<std::uint32_t>(product.b_type.value_or(product.type)) << 25;
}
simt::GroupProduct decoded(std::uint32_t variant) {
  const auto bit = [variant](int k) { return (variant >> k & 1U) != 0; };
  simt::GroupProduct product;
  product.columns = variant & 0xFFFFU;
  product.type = static_cast<simt::Factor>(variant >> 16 & 7U);
  product.a_major = bit(20) ? simt::Major::rows : simt::Major::k;
  product.b_major = bit(21) ? simt::Major::rows : simt::Major::k;
  product.a_in_registers = bit(22);
  product.is_negative = bit(23);
  product.has_half_sums = bit(24);
  product.b_type = static_cast<simt::Factor>(variant >> 25 & 7U);
  return product;
}

// Descriptors and scale-d, as long as all lanes have the same.
struct Operands {
  std::uint64_t a = 0, b = 0;
  bool adds = false, are_equal = true;
};

Operands operands_of(const Warpgroups& groups, std::uint32_t group, const Instruction& in,
                     const simt::GroupProduct& product) {
  const std::size_t scale = in.slots.size() - 1, b = scale - 1, a = b - 1;
  const Warp& first = groups.warp_of(group, 0);
  Operands all{product.a_in_registers ? 0 : first.read<std::uint64_t>(in.slots[a])[0],
               first.read<std::uint64_t>(in.slots[b])[0],
               (first.predicate_at(in.slots[scale]) & 1U) != 0};
  for (std::uint32_t k = 0; k < Warpgroups::kWarps; ++k) {
    const Warp& warp = groups.warp_of(group, k);
    const auto same = [&](std::size_t operand, std::uint64_t value) {
      const auto& lanes = warp.read<std::uint64_t>(in.slots[operand]);
      return std::all_of(lanes.begin(), lanes.end(), [&](auto each) { return each == value; });
    };
    all.are_equal = all.are_equal && same(b, all.b) && (product.a_in_registers || same(a, all.a)) &&
                    warp.predicate_at(in.slots[scale]) == (all.adds ? kAllLanes : 0);
  }
  return all;
}

void multiply(Warp& warp, const Instruction& in) {
  warp.block().warpgroups().come(
      warp, in, [](Warpgroups& groups, std::uint32_t group, const Instruction& product_of) {
        simt::GroupProduct product = decoded(product_of.variant);
        const Operands operands = operands_of(groups, group, product_of, product);
        if (!operands.are_equal) {
          return groups.block().give_up(
              {simt::Fault::divergence,
               "lanes of a warpgroup give wgmma.mma_async different descriptors or scales"},
              product_of);
        }
        product.a_matrix = operands.a;
        product.b_matrix = operands.b;
        product.adds = operands.adds;
        groups.multiply(group, product_of, product);
      });
}

void fence(Warp& warp, const Instruction& in) {
  warp.block().warpgroups().come(
      warp, in,
      [](Warpgroups& groups, std::uint32_t group, const Instruction&) { groups.fence(group); });
}
void commit(Warp& warp, const Instruction& in) {
  warp.block().warpgroups().come(
      warp, in,
      [](Warpgroups& groups, std::uint32_t group, const Instruction&) { groups.commit(group); });
}
void wait(Warp& warp, const Instruction& in) {
  warp.block().warpgroups().come(
      warp, in, [](Warpgroups& groups, std::uint32_t group, const Instruction& waits) {
        groups.wait(group, waits.immediates[0]);
      });
}

// imm-scale-a and -b: 1 or -1; imm-trans-a and -b: 0 or 1.
bool is_scale(std::uint64_t value) { return value == 1 || value == ~std::uint64_t{0}; }

simt::Factor factor_named(std::string_view name) {
  constexpr std::pair<std::string_view, simt::Factor> kNames[] = {{"f16", simt::Factor::f16},
                                                                  {"bf16", simt::Factor::bf16},
                                                                  {"tf32", simt::Factor::tf32},
                                                                  {"e4m3", simt::Factor::e4m3},
                                                                  {"e5m2", simt::Factor::e5m2}};
  const auto* const known = std::find_if(std::begin(kNames), std::end(kNames),
                                         [&](const auto& each) { return each.first == name; });
  return known->second;
}

template <bool kFromRegisters>
Execute products(const Spelling& spelling, Instruction& in) {
  simt::GroupProduct product;
  const auto& words = spelling.modifiers;
  const std::string_view shape = words[3];  // m64n96k16
  std::from_chars(shape.data() + shape.find('n') + 1, shape.data() + shape.size(), product.columns);
  product.has_half_sums = words[4] == "f16";
  product.type = factor_named(words[5]);
  product.b_type = factor_named(words[6]);
  product.a_in_registers = kFromRegisters;
  const std::vector<std::uint64_t>& constants = in.immediates;
  if (!is_scale(constants[0]) || !is_scale(constants[1])) return nullptr;
  product.is_negative = constants[0] != constants[1];
  for (std::size_t k = 2; k < constants.size(); ++k) {
    if (constants[k] > 1) return nullptr;
  }
  const auto major_of = [](std::uint64_t flag) {
    return flag == 0 ? simt::Major::k : simt::Major::rows;
  };
  const bool can_transpose = simt::bits_of(product.type) == 16;
  if (!kFromRegisters && can_transpose) product.a_major = major_of(constants[2]);
  if (can_transpose) product.b_major = major_of(constants.back());
  in.product_registers = product.sum_registers() + (kFromRegisters ? simt::kFragmentWords : 0);
  in.variant = encoded(product);
  return multiply;
}

// A kind of products: the type of D, those of A and B, and k.
struct Kind {
  const char *sums, *factors, *depth;
  bool can_transpose;
};
constexpr Kind kKinds[] = {{"f32", ".f16.f16", "k16", true},
                           {"f16", ".f16.f16", "k16", true},
                           {"f32", ".bf16.bf16", "k16", true},
                           {"f32", ".tf32.tf32", "k8", false},
                           {"f32", "(.e4m3|.e5m2)(.e4m3|.e5m2)", "k32", false},
                           {"f16", "(.e4m3|.e5m2)(.e4m3|.e5m2)", "k32", false}};

std::string pattern_of(const Kind& kind) {
  std::string shapes;
  for (std::uint32_t columns = kColumnStep; columns <= kMostColumns; columns += kColumnStep) {
    shapes += (shapes.empty() ? ".m64n" : "|.m64n") + std::to_string(columns) + kind.depth;
  }
  return "wgmma.mma_async.sync.aligned(" + shapes + ")." + kind.sums + kind.factors;
}

std::string operands_of(const Kind& kind, bool from_registers) {
  const std::string sums = std::string(kind.sums) == "f32" ? "{d:f32*n}" : "{d:b32*h}";
  const std::string a = from_registers ? " {a:b32*4}" : " a:b64";
  const std::string transposed = !kind.can_transpose ? "" : from_registers ? " #i" : " #i #i";
  return sums + a + " b:b64 p:pred #i #i" + transposed;
}

// The texts that forms point to.
struct KindTexts {
  std::string pattern, from_shared, from_registers;
};

std::vector<Form> all_forms() {
  static const std::vector<KindTexts> texts = [] {
    std::vector<KindTexts> all;
    for (const Kind& kind : kKinds) {
      all.push_back({pattern_of(kind), operands_of(kind, false), operands_of(kind, true)});
    }
    return all;
  }();
  std::vector<Form> forms{{"wgmma.fence.sync.aligned", "", as<fence>},
                          {"wgmma.commit_group.sync.aligned", "", as<commit>},
                          {"wgmma.wait_group.sync.aligned", "#i", as<wait>}};
  for (const KindTexts& each : texts) {
    forms.push_back({each.pattern, each.from_shared, products<false>});
    forms.push_back({each.pattern, each.from_registers, products<true>});
  }
  return forms;
}

}  // namespace

std::span<const Form> group_product_forms() {
  static const std::vector<Form> forms = all_forms();
  return forms;
}

}  // namespace attest::ptx
