#include <algorithm>
#include <limits>

#include "gpu/ptx/arithmetic/floating.hpp"
#include "gpu/ptx/arithmetic/half_values.hpp"

/// cvt: between integers, between floating-point formats, and from each to the other.
namespace attest::ptx {
namespace {

// Integers as they are, whatever their type.
using Wide = __int128;

std::uint64_t low_bits(std::uint32_t count) {
  return count == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
}

struct Range {
  Wide least, most;
};
Range range_of(Type type) {
  const std::uint32_t width = bits(type);
  if (info(type).type_class != TypeClass::signed_integer) return {0, low_bits(width)};
  return {-(Wide{1} << (width - 1)), (Wide{1} << (width - 1)) - 1};
}

// The bits of an integer in a register that may be wider: signed ones are extended.
std::uint64_t in_register(std::uint64_t value, Type type) {
  const std::uint32_t width = bits(type);
  const bool is_signed = info(type).type_class == TypeClass::signed_integer;
  const bool is_negative = is_signed && (value >> (width - 1) & 1U) != 0;
  return (value & low_bits(width)) | (is_negative ? ~low_bits(width) : 0);
}

Wide integer_of(std::uint64_t bits_of_register, Type type) {
  const std::uint64_t extended = in_register(bits_of_register, type);
  return info(type).type_class == TypeClass::signed_integer
             ? Wide{static_cast<std::int64_t>(extended)}
             : Wide{extended};
}

double float_of(std::uint64_t bits_of_register, Type type, bool ftz) {
  switch (type) {
    case Type::f16:
      return F16::decode(static_cast<std::uint16_t>(bits_of_register));
    case Type::bf16:
      return Bf16::decode(static_cast<std::uint16_t>(bits_of_register));
    case Type::f32: {
      const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(bits_of_register));
      return static_cast<double>(ftz ? flushed(value) : value);
    }
    default:
      return std::bit_cast<double>(bits_of_register);
  }
}

// Rounds a value to a format; its bits.
std::uint64_t bits_of(double value, Type type, const Instruction& in, Tie tie) {
  if (in.sat) value = saturated(value);
  switch (type) {
    case Type::f16:
      return encode<F16>(value, in.rounding);
    case Type::bf16:
      return encode<Bf16>(value, in.rounding);
    case Type::f64:
      return std::bit_cast<std::uint64_t>(value != value ? result_nan<double>() : value);
    default:
      break;
  }
  if (value != value) return std::bit_cast<std::uint32_t>(result_nan<float>());
  const auto narrow =
      static_cast<float>(rounded(value, type == Type::tf32 ? kTf32 : kF32, in.rounding, tie));
  return std::bit_cast<std::uint32_t>(in.ftz ? flushed(narrow) : narrow);
}

// An integer with at most 53 significant bits, the last of which tells whether others were there:
// formats of fewer bits round it as the integer itself.
double to_odd(Wide value) {
  const bool is_negative = value < 0;
  auto magnitude = static_cast<std::uint64_t>(is_negative ? -value : value);
  constexpr std::uint64_t kLost = (1U << 11) - 1;
  if (magnitude >> 53 != 0) {
    magnitude = (magnitude & ~kLost) | ((magnitude & kLost) != 0 ? kLost + 1 : 0);
  }
  const auto result = static_cast<double>(magnitude);
  return is_negative ? -result : result;
}

// PTX ISA, cvt: NaN gives zero, or the highest bit alone where either side has 64 bits.
std::uint64_t integer_bits(double value, Type from, Type to, Rounding rounding) {
  if (value != value) {
    return from == Type::f64 || bits(to) == 64 ? std::uint64_t{1} << (bits(to) - 1) : 0;
  }
  const Range range = range_of(to);
  const double whole = rounded_to_integer(value, rounding);
  const double above = static_cast<double>(range.most) + 1.0;  // a power of two, or rounded to it
  if (whole >= above || whole > static_cast<double>(range.most)) {
    return static_cast<std::uint64_t>(range.most);
  }
  if (whole <= static_cast<double>(range.least)) return static_cast<std::uint64_t>(range.least);
  return static_cast<std::uint64_t>(static_cast<Wide>(whole));
}

// Types of a conversion, packed into the variant of its instruction.
struct Types {
  Type to, from;
};
Types types_of(const Instruction& in) {
  return {static_cast<Type>(in.variant & 255U), static_cast<Type>(in.variant >> 8 & 255U)};
}
bool is_away(const Instruction& in) { return (in.variant >> 16 & 1U) != 0; }

enum class Kind : std::uint8_t { integers, to_integer, from_integer, floats, to_whole };

template <Kind kKind>
std::uint64_t converted(std::uint64_t value, const Instruction& in) {
  const auto [to, from] = types_of(in);
  if constexpr (kKind == Kind::integers) {
    const Wide number = integer_of(value, from);
    const Range range = range_of(to);
    const Wide kept = in.sat ? std::clamp(number, range.least, range.most) : number;
    return in_register(static_cast<std::uint64_t>(kept), to);
  } else if constexpr (kKind == Kind::to_integer) {
    return in_register(integer_bits(float_of(value, from, in.ftz), from, to, in.rounding), to);
  } else if constexpr (kKind == Kind::from_integer) {
    return bits_of(to_odd(integer_of(value, from)), to, in, Tie::even);
  } else if constexpr (kKind == Kind::floats) {
    return bits_of(float_of(value, from, in.ftz), to, in, is_away(in) ? Tie::away : Tie::even);
  } else {
    return bits_of(rounded_to_integer(float_of(value, from, in.ftz), in.rounding), to, in,
                   Tie::even);
  }
}

// Integers that are cut or extended, without a choice for each lane.
template <class D, class S>
void run_extension(Warp& warp, const Instruction& in) {
  struct Kept {
    std::uint32_t cut;
    bool is_signed;
  };
  const auto kept = [](Type type) {
    const bool is_signed = info(type).type_class == TypeClass::signed_integer;
    return Kept{64 - bits(type), is_signed};
  };
  const auto [to, from] = types_of(in);
  const Kept first = kept(from);
  const Kept then = kept(to);
  const auto extended = [](std::uint64_t value, const Kept& part) {
    const std::uint64_t high = value << part.cut;
    return part.is_signed ? static_cast<std::uint64_t>(static_cast<std::int64_t>(high) >> part.cut)
                          : high >> part.cut;
  };
  each_lane<D, S>(warp, in,
                  [=](S value) { return static_cast<D>(extended(extended(value, first), then)); });
}

template <Kind kKind, class D, class S>
void run_conversion(Warp& warp, const Instruction& in) {
  if (kKind == Kind::integers && !in.sat) return run_extension<D, S>(warp, in);
  each_lane<D, S>(warp, in, [&in](S value) { return static_cast<D>(converted<kKind>(value, in)); });
}

// Registers may be wider than the types: the instruction knows their bytes.
template <Kind kKind>
void run_by_registers(Warp& warp, const Instruction& in) {
  const auto run = [&]<class D>() {
    switch (in.widths[1]) {
      case 2:
        return run_conversion<kKind, D, std::uint16_t>(warp, in);
      case 4:
        return run_conversion<kKind, D, std::uint32_t>(warp, in);
      default:
        return run_conversion<kKind, D, std::uint64_t>(warp, in);
    }
  };
  switch (in.widths[0]) {
    case 2:
      return run.template operator()<std::uint16_t>();
    case 4:
      return run.template operator()<std::uint32_t>();
    default:
      return run.template operator()<std::uint64_t>();
  }
}

template <Kind kKind>
Execute convert(const Spelling& spelling, Instruction& in) {
  const auto number = [](Type type) { return static_cast<std::uint32_t>(type); };
  in.variant = number(spelling.first_type()) | number(spelling.last_type()) << 8 |
               (spelling.has("rna") ? 1U << 16 : 0U);
  return run_by_registers<kKind>;
}

// From 64-bit integers to f64: the processor's own, in the rounding mode.
template <class T>
void run_to_double(Warp& warp, const Instruction& in) {
  Lanes<T> source = warp.read<T>(in.slots[1]);
  Lanes<double> results;
  {
    const RoundingScope scope(in.rounding);
    RoundingScope::pin(source);
    for (std::size_t lane = 0; lane < kWarpLanes; ++lane) {
      results[lane] = static_cast<double>(source[lane]);
    }
    RoundingScope::pin(results);
  }
  // clang adds two halves of an unsigned integer, whose sum rounds 0 down to -0.
  for (double& result : results) result = result == 0 ? 0.0 : result;
  warp.write(in.slots[0], results);
}
Execute to_double(const Spelling& spelling, Instruction&) {
  return spelling.last_type() == Type::s64 ? run_to_double<std::int64_t>
                                           : run_to_double<std::uint64_t>;
}

constexpr Form kForms[] = {
    {"cvt[.sat](.u8|.u16|.u32|.u64|.s8|.s16|.s32|.s64)(.u8|.u16|.u32|.u64|.s8|.s16|.s32|.s64)",
     "d+ a+", convert<Kind::integers>},
    {"cvt(.rni|.rzi|.rmi|.rpi)[.ftz][.sat](.u8|.u16|.u32|.u64|.s8|.s16|.s32|.s64)"
     "(.f16|.bf16|.f32|.f64)",
     "d+ a", convert<Kind::to_integer>},
    {"cvt(.rn|.rz|.rm|.rp)[.sat](.f16|.bf16|.f32)(.u8|.u16|.u32|.u64|.s8|.s16|.s32|.s64)", "d a+",
     convert<Kind::from_integer>},
    {"cvt(.rn|.rz|.rm|.rp).f64(.u8|.u16|.u32|.s8|.s16|.s32)", "d a+", convert<Kind::from_integer>},
    {"cvt(.rn|.rz|.rm|.rp).f64(.u64|.s64)", "d a", to_double},
    {"cvt[.ftz].f64(.f16|.bf16|.f32)", "d a", convert<Kind::floats>},
    {"cvt[.ftz][.sat].f32(.f16|.bf16)", "d a", convert<Kind::floats>},
    {"cvt[.ftz][.sat].f32.f32", "d a", convert<Kind::floats>},
    {"cvt(.rn|.rz|.rm|.rp)[.ftz][.sat].f32.f64", "d a", convert<Kind::floats>},
    {"cvt(.rn|.rz|.rm|.rp)[.ftz][.sat].f16(.f32|.f64)", "d a", convert<Kind::floats>},
    {"cvt(.rn|.rz).bf16.f32", "d a", convert<Kind::floats>},
    {"cvt(.rna|.rn|.rz).tf32.f32", "d a", convert<Kind::floats>},
    {"cvt(.rni|.rzi|.rmi|.rpi)[.ftz][.sat].f32.f32", "d a", convert<Kind::to_whole>},
    {"cvt(.rni|.rzi|.rmi|.rpi).f64.f64", "d a", convert<Kind::to_whole>},
    {"cvt(.rni|.rzi|.rmi|.rpi)[.sat].f16.f16", "d a", convert<Kind::to_whole>},
};

}  // namespace

std::span<const Form> conversion_forms() { return kForms; }

}  // namespace attest::ptx
