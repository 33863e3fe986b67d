#include <algorithm>
#include <bit>
#include <limits>

#include "gpu/ptx/arithmetic/lanes.hpp"

/// Bitwise operations, shifts and fields.
namespace attest::ptx {
namespace {

template <class T>
constexpr std::uint32_t kBits = std::numeric_limits<std::make_unsigned_t<T>>::digits;

struct And {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(a & b);
  }
};
struct Or {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(a | b);
  }
};
struct Xor {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(a ^ b);
  }
};
struct Not {
  template <class T>
  T operator()(T a) const {
    return static_cast<T>(~a);
  }
};
// A shift by more bits than there are shifts all of them out.
struct ShiftLeft {
  template <class T>
  T operator()(T a, std::uint32_t by) const {
    return by < kBits<T> ? static_cast<T>(a << by) : T{0};
  }
};
struct ShiftRight {
  template <class T>
  T operator()(T a, std::uint32_t by) const {
    return static_cast<T>(by < kBits<T> ? a >> by : a >> (kBits<T> - 1) >> 1);
  }
};
struct Count {
  template <class T>
  std::uint32_t operator()(T a) const {
    return static_cast<std::uint32_t>(std::popcount(a));
  }
};
struct LeadingZeros {
  template <class T>
  std::uint32_t operator()(T a) const {
    return static_cast<std::uint32_t>(std::countl_zero(a));
  }
};
// The highest bit that is another than those above it, which have the sign; all ones for none.
// `kShift`: how far it lies below the highest place.
template <bool kShift>
struct FindHighest {
  template <class T>
  std::uint32_t operator()(T a) const {
    using Bits = std::make_unsigned_t<T>;
    const auto other = static_cast<Bits>(a < 0 ? ~a : a);
    if (other == 0) return ~std::uint32_t{0};
    const auto leading = static_cast<std::uint32_t>(std::countl_zero(other));
    return kShift ? leading : kBits<T> - 1 - leading;
  }
};
struct Reverse {
  template <class T>
  T operator()(T a) const {
    T result = 0;
    for (std::uint32_t k = 0; k < kBits<T>; ++k) {
      result = static_cast<T>(result << 1 | (a >> k & 1));
    }
    return result;
  }
};

// So many ones from the lowest bit on.
template <class T>
T low_ones(std::uint32_t count) {
  return count >= kBits<T> ? static_cast<T>(~T{0}) : static_cast<T>((T{1} << count) - 1);
}

// A field may reach beyond the highest bit; a signed one is filled with its highest bit there is.
struct ExtractField {
  template <class T>
  T operator()(T a, std::uint32_t position, std::uint32_t length) const {
    using U = std::make_unsigned_t<T>;
    position &= 255U;
    length &= 255U;
    if (length == 0) return 0;
    const std::uint32_t last = std::min(position + length - 1, kBits<T> - 1);
    const bool is_negative = std::is_signed_v<T> && (static_cast<U>(a) >> last & 1U) != 0;
    const U shifted = ShiftRight{}(static_cast<U>(a), position);
    const U kept = static_cast<U>(last < position ? 0 : last - position + 1);
    const U ones = low_ones<U>(static_cast<std::uint32_t>(kept));
    return static_cast<T>(is_negative ? shifted | static_cast<U>(~ones) : shifted & ones);
  }
};
struct InsertField {
  template <class T>
  T operator()(T a, T b, std::uint32_t position, std::uint32_t length) const {
    const T field = ShiftLeft{}(low_ones<T>(length & 255U), position & 255U);
    return static_cast<T>((b & ~field) | (ShiftLeft{}(a, position & 255U) & field));
  }
};
// Each bit is looked up in the table by those of a, b and c.
struct Lookup {
  std::uint32_t table;
  std::uint32_t operator()(std::uint32_t a, std::uint32_t b, std::uint32_t c) const {
    std::uint32_t result = 0;
    for (std::uint32_t k = 0; k < 8; ++k) {
      const std::uint32_t here =
          ((k & 4U) != 0 ? a : ~a) & ((k & 2U) != 0 ? b : ~b) & ((k & 1U) != 0 ? c : ~c);
      result |= (table >> k & 1U) != 0 ? here : 0;
    }
    return result;
  }
};
struct PermuteBytes {
  std::uint32_t operator()(std::uint32_t a, std::uint32_t b, std::uint32_t selectors) const {
    const std::uint64_t bytes = a | std::uint64_t{b} << 32;
    std::uint32_t result = 0;
    for (std::uint32_t k = 0; k < 4; ++k) {
      const std::uint32_t selector = selectors >> 4 * k & 15U;
      const auto byte = static_cast<std::uint32_t>(bytes >> 8 * (selector & 7U) & 255U);
      const std::uint32_t sign = (byte & 128U) != 0 ? 255U : 0U;
      result |= ((selector & 8U) != 0 ? sign : byte) << 8 * k;
    }
    return result;
  }
};
// The high word of (b, a) shifted left, or its low word shifted right.
struct FunnelShift {
  bool is_left, is_clamped;
  std::uint32_t operator()(std::uint32_t a, std::uint32_t b, std::uint32_t by) const {
    const std::uint32_t count = is_clamped ? std::min(by, 32U) : by & 31U;
    const std::uint64_t both = a | std::uint64_t{b} << 32;
    return static_cast<std::uint32_t>(is_left ? both << count >> 32 : both >> count);
  }
};

template <class Op>
Execute shift(const Spelling& spelling, Instruction&) {
  return Integers::pick(spelling.last_type(),
                        []<class T>() -> Execute { return run_lanes<Op, T, T, std::uint32_t>; });
}
template <class Op>
Execute counted(const Spelling& spelling, Instruction&) {
  return Words::pick(spelling.last_type(),
                     []<class T>() -> Execute { return run_lanes<Op, std::uint32_t, T>; });
}
Execute extract(const Spelling& spelling, Instruction&) {
  return Integers::pick(spelling.last_type(), []<class T>() -> Execute {
    return run_lanes<ExtractField, T, T, std::uint32_t, std::uint32_t>;
  });
}
Execute insert(const Spelling& spelling, Instruction&) {
  return Words::pick(spelling.last_type(), []<class T>() -> Execute {
    return run_lanes<InsertField, T, T, T, std::uint32_t, std::uint32_t>;
  });
}

void look_up(Warp& warp, const Instruction& in) {
  each_lane<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>(
      warp, in, Lookup{static_cast<std::uint32_t>(in.immediates[0])});
}

template <bool kLeft, bool kClamped>
void funnel_shift(Warp& warp, const Instruction& in) {
  each_lane<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>(
      warp, in, FunnelShift{kLeft, kClamped});
}
Execute funnel(const Spelling& spelling, Instruction&) {
  const bool is_clamped = spelling.has("clamp");
  if (spelling.has("l")) return is_clamped ? funnel_shift<true, true> : funnel_shift<true, false>;
  return is_clamped ? funnel_shift<false, true> : funnel_shift<false, false>;
}

// Predicates are bits of one word: the same operations, on all lanes at once.
template <class Op>
void combine_predicates(Warp& warp, const Instruction& in) {
  warp.write_predicates(in.slots[0], Op{}(warp.predicates(in, 1), warp.predicates(in, 2)));
}
void negate_predicate(Warp& warp, const Instruction& in) {
  warp.write_predicates(in.slots[0], ~warp.predicates(in, 1));
}
template <class Op>
Execute predicates(const Spelling&, Instruction&) {
  return combine_predicates<Op>;
}

template <bool kShift>
Execute found(const Spelling& spelling, Instruction&) {
  return TypeList<std::int32_t, std::uint32_t, std::int64_t, std::uint64_t>::pick(
      spelling.last_type(),
      []<class T>() -> Execute { return run_lanes<FindHighest<kShift>, std::uint32_t, T>; });
}

constexpr Form kForms[] = {
    {"and(.b16|.b32|.b64)", "d a b", two_sources<And, Words>},
    {"or(.b16|.b32|.b64)", "d a b", two_sources<Or, Words>},
    {"xor(.b16|.b32|.b64)", "d a b", two_sources<Xor, Words>},
    {"not(.b16|.b32|.b64)", "d a", one_source<Not, Words>},
    {"and.pred", "d a b", predicates<And>},
    {"or.pred", "d a b", predicates<Or>},
    {"xor.pred", "d a b", predicates<Xor>},
    {"not.pred", "d a", [](const Spelling&, Instruction&) -> Execute { return negate_predicate; }},
    {"shl(.b16|.b32|.b64)", "d a b:u32", shift<ShiftLeft>},
    {"shr(.b16|.b32|.b64|.u16|.u32|.u64|.s16|.s32|.s64)", "d a b:u32", shift<ShiftRight>},
    {"shf(.l|.r)(.clamp|.wrap).b32", "d a b c:u32", funnel},
    {"popc(.b32|.b64)", "d:u32 a", counted<Count>},
    {"clz(.b32|.b64)", "d:u32 a", counted<LeadingZeros>},
    {"bfind(.u32|.s32|.u64|.s64)", "d:u32 a", found<false>},
    {"bfind.shiftamt(.u32|.s32|.u64|.s64)", "d:u32 a", found<true>},
    {"brev(.b32|.b64)", "d a", one_source<Reverse, Words>},
    {"bfe(.u32|.s32|.u64|.s64)", "d a b:u32 c:u32", extract},
    {"bfi(.b32|.b64)", "d a b c:u32 e:u32", insert},
    {"lop3.b32", "d a b c #i", [](const Spelling&, Instruction&) -> Execute { return look_up; }},
    {"prmt.b32", "d a b c",
     only<PermuteBytes, std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>},
};

}  // namespace

std::span<const Form> bit_forms() { return kForms; }

}  // namespace attest::ptx
