#include <array>

#include "core/dtype/dtype.hpp"
#include "gpu/ptx/arithmetic/floating.hpp"

/// Comparisons and selections.
namespace attest::ptx {
namespace {

// Relations of two numbers, as a set of bits: a comparison is the set for which it holds.
enum Relation : std::uint32_t { kLess = 1, kEqual = 2, kGreater = 4, kUnordered = 8 };
constexpr std::uint32_t kNumbers = kLess | kEqual | kGreater;

struct Comparison {
  std::string_view name;
  std::uint32_t relations;
};
constexpr std::array kComparisons{
    Comparison{"eq", kEqual},
    Comparison{"ne", kLess | kGreater},
    Comparison{"lt", kLess},
    Comparison{"le", kLess | kEqual},
    Comparison{"gt", kGreater},
    Comparison{"ge", kGreater | kEqual},
    Comparison{"lo", kLess},
    Comparison{"ls", kLess | kEqual},
    Comparison{"hi", kGreater},
    Comparison{"hs", kGreater | kEqual},
    Comparison{"equ", kEqual | kUnordered},
    Comparison{"neu", kLess | kGreater | kUnordered},
    Comparison{"ltu", kLess | kUnordered},
    Comparison{"leu", kLess | kEqual | kUnordered},
    Comparison{"gtu", kGreater | kUnordered},
    Comparison{"geu", kGreater | kEqual | kUnordered},
    Comparison{"num", kNumbers},
    Comparison{"nan", kUnordered},
};

std::uint32_t relations_of(const Spelling& spelling) {
  for (const Comparison& each : kComparisons) {
    if (spelling.modifiers[0] == each.name) return each.relations;
  }
  return 0;
}

enum class Combination : std::uint32_t { none = 0, and_ = 16, or_ = 32, xor_ = 64 };

// "setp.lt.and.s32 p|q, a, b, c": q has the opposite comparison, combined with c in the same way.
void write_compared(Warp& warp, const Instruction& in, std::uint32_t holds) {
  const auto combined = [&](std::uint32_t value) {
    if ((in.variant & static_cast<std::uint32_t>(Combination::and_)) != 0) {
      return value & warp.predicates(in, 4);
    }
    if ((in.variant & static_cast<std::uint32_t>(Combination::or_)) != 0) {
      return value | warp.predicates(in, 4);
    }
    if ((in.variant & static_cast<std::uint32_t>(Combination::xor_)) != 0) {
      return value ^ warp.predicates(in, 4);
    }
    return value;
  };
  const std::uint32_t first = combined(holds), second = combined(~holds);
  warp.write_predicates(in.slots[1], second);
  warp.write_predicates(in.slots[0], first);
}

template <class T>
std::uint32_t relation(T a, T b) {
  return a < b ? kLess : a == b ? kEqual : a > b ? kGreater : kUnordered;
}

template <class T, class Read>
void compare(Warp& warp, const Instruction& in, Read&& read) {
  const Lanes<T>& a = warp.read<T>(in.slots[2]);
  const Lanes<T>& b = warp.read<T>(in.slots[3]);
  std::uint32_t holds = 0;
  for (std::size_t lane = 0; lane < kWarpLanes; ++lane) {
    const bool here = (relation(read(a[lane]), read(b[lane])) & in.variant & 15U) != 0;
    holds |= std::uint32_t{here} << lane;
  }
  write_compared(warp, in, holds);
}

template <class T>
void compare_plain(Warp& warp, const Instruction& in) {
  compare<T>(warp, in, [](T value) { return value; });
}
template <class T>
void compare_floats(Warp& warp, const Instruction& in) {
  compare<T>(warp, in, [&in](T value) { return in.ftz ? flushed(value) : value; });
}
void compare_f16(Warp& warp, const Instruction& in) {
  compare<std::uint16_t>(warp, in, float_from_f16);
}
void compare_bf16(Warp& warp, const Instruction& in) {
  compare<std::uint16_t>(warp, in, float_from_bf16);
}

void note_comparison(const Spelling& spelling, Instruction& in) {
  in.variant = relations_of(spelling);
  const auto add = [&](const char* name, Combination combination) {
    if (spelling.has(name)) in.variant |= static_cast<std::uint32_t>(combination);
  };
  add("and", Combination::and_);
  add("or", Combination::or_);
  add("xor", Combination::xor_);
}

Execute set_integers(const Spelling& spelling, Instruction& in) {
  note_comparison(spelling, in);
  return Integers::pick(spelling.last_type(),
                        []<class T>() -> Execute { return compare_plain<T>; });
}
Execute set_floats(const Spelling& spelling, Instruction& in) {
  note_comparison(spelling, in);
  if (spelling.last_type() == Type::f16) return compare_f16;
  if (spelling.last_type() == Type::bf16) return compare_bf16;
  return Floats::pick(spelling.last_type(), []<class T>() -> Execute { return compare_floats<T>; });
}

template <class T>
void select_lanes(Warp& warp, const Instruction& in) {
  const std::uint32_t chosen = warp.predicates(in, 3);
  const Lanes<T>&a = warp.read<T>(in.slots[1]), &b = warp.read<T>(in.slots[2]);
  Lanes<T> results;
  for (std::size_t lane = 0; lane < kWarpLanes; ++lane) {
    results[lane] = (chosen >> lane & 1U) != 0 ? a[lane] : b[lane];
  }
  warp.write(in.slots[0], results);
}

// Bits of 16, 32 or 64, whatever they stand for.
template <template <class> class Kernel>
Execute by_width(Type type) {
  switch (bits(type)) {
    case 16:
      return Kernel<std::uint16_t>::run;
    case 32:
      return Kernel<std::uint32_t>::run;
    default:
      return Kernel<std::uint64_t>::run;
  }
}
template <class T>
struct Select {
  static void run(Warp& warp, const Instruction& in) { select_lanes<T>(warp, in); }
};
Execute select(const Spelling& spelling, Instruction&) {
  return by_width<Select>(spelling.last_type());
}

// a where c is not negative, else b; NaN selects b.
template <class T>
struct SelectBySign {
  static void run(Warp& warp, const Instruction& in) {
    each_lane<T, T, T, std::int32_t>(warp, in,
                                     [](T a, T b, std::int32_t c) { return c >= 0 ? a : b; });
  }
};
template <class T>
struct SelectByFloat {
  static void run(Warp& warp, const Instruction& in) {
    each_lane<T, T, T, float>(
        warp, in, [&in](T a, T b, float c) { return (in.ftz ? flushed(c) : c) >= 0.0F ? a : b; });
  }
};
Execute select_by_sign(const Spelling& spelling, Instruction&) {
  if (spelling.last_type() == Type::f32) return by_width<SelectByFloat>(spelling.first_type());
  return by_width<SelectBySign>(spelling.first_type());
}

constexpr Form kForms[] = {
    {"setp(.eq|.ne)(.b16|.b32|.b64)", "d:pred |p a b", set_integers},
    {"setp(.eq|.ne)(.and|.or|.xor)(.b16|.b32|.b64)", "d:pred |p a b c:pred", set_integers},
    {"setp(.eq|.ne|.lt|.le|.gt|.ge)(.s16|.s32|.s64)", "d:pred |p a b", set_integers},
    {"setp(.eq|.ne|.lt|.le|.gt|.ge)(.and|.or|.xor)(.s16|.s32|.s64)", "d:pred |p a b c:pred",
     set_integers},
    {"setp(.eq|.ne|.lt|.le|.gt|.ge|.lo|.ls|.hi|.hs)(.u16|.u32|.u64)", "d:pred |p a b",
     set_integers},
    {"setp(.eq|.ne|.lt|.le|.gt|.ge|.lo|.ls|.hi|.hs)(.and|.or|.xor)(.u16|.u32|.u64)",
     "d:pred |p a b c:pred", set_integers},
    {"setp(.eq|.ne|.lt|.le|.gt|.ge|.equ|.neu|.ltu|.leu|.gtu|.geu|.num|.nan)[.ftz].f32",
     "d:pred |p a b", set_floats},
    {"setp(.eq|.ne|.lt|.le|.gt|.ge|.equ|.neu|.ltu|.leu|.gtu|.geu|.num|.nan)(.and|.or|.xor)[.ftz]"
     ".f32",
     "d:pred |p a b c:pred", set_floats},
    {"setp(.eq|.ne|.lt|.le|.gt|.ge|.equ|.neu|.ltu|.leu|.gtu|.geu|.num|.nan)(.f64|.f16|.bf16)",
     "d:pred |p a b", set_floats},
    {"setp(.eq|.ne|.lt|.le|.gt|.ge|.equ|.neu|.ltu|.leu|.gtu|.geu|.num|.nan)(.and|.or|.xor)"
     "(.f64|.f16|.bf16)",
     "d:pred |p a b c:pred", set_floats},
    {"selp(.b16|.b32|.b64|.u16|.u32|.u64|.s16|.s32|.s64|.f32|.f64)", "d a b c:pred", select},
    {"slct(.b16|.b32|.b64|.u16|.u32|.u64|.s16|.s32|.s64|.f32|.f64).s32", "d a:first b:first c",
     select_by_sign},
    {"slct[.ftz](.b16|.b32|.b64|.u16|.u32|.u64|.s16|.s32|.s64|.f32|.f64).f32",
     "d a:first b:first c", select_by_sign},
};

}  // namespace

std::span<const Form> comparison_forms() { return kForms; }

}  // namespace attest::ptx
