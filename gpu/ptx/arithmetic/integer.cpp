#include <algorithm>
#include <limits>

#include "gpu/ptx/arithmetic/lanes.hpp"

/// Integer arithmetic. It wraps around; PTX leaves open what a division by zero gives: here all
/// ones and the dividend, as devices have it.
namespace attest::ptx {
namespace {

template <class T>
using Unsigned = std::make_unsigned_t<T>;
// Products of 16 bits in their own type would be signed ints that overflow.
template <class T>
using Wide = std::conditional_t<(sizeof(T) < 8), std::uint64_t, unsigned __int128>;
template <class T>
using SignedWide = std::conditional_t<(sizeof(T) < 8), std::int64_t, __int128>;
template <class T>
using Exact = std::conditional_t<std::is_signed_v<T>, SignedWide<T>, Wide<T>>;

struct Add {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(static_cast<Unsigned<T>>(a) + static_cast<Unsigned<T>>(b));
  }
};
struct AddSaturated {
  std::int32_t operator()(std::int32_t a, std::int32_t b) const {
    using Limits = std::numeric_limits<std::int32_t>;
    return static_cast<std::int32_t>(
        std::clamp<std::int64_t>(std::int64_t{a} + b, Limits::min(), Limits::max()));
  }
};
struct SubSaturated {
  std::int32_t operator()(std::int32_t a, std::int32_t b) const {
    using Limits = std::numeric_limits<std::int32_t>;
    return static_cast<std::int32_t>(
        std::clamp<std::int64_t>(std::int64_t{a} - b, Limits::min(), Limits::max()));
  }
};
struct Sub {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(static_cast<Unsigned<T>>(a) - static_cast<Unsigned<T>>(b));
  }
};
struct MulLow {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
  }
};
struct MulHigh {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>((static_cast<Exact<T>>(a) * static_cast<Exact<T>>(b)) >> 8 * sizeof(T));
  }
};
struct MadLow {
  template <class T>
  T operator()(T a, T b, T c) const {
    return Add{}(MulLow{}(a, b), c);
  }
};
struct MadHigh {
  template <class T>
  T operator()(T a, T b, T c) const {
    return Add{}(MulHigh{}(a, b), c);
  }
};
template <class D>
struct MulWide {
  template <class T>
  D operator()(T a, T b) const {
    return static_cast<D>(static_cast<D>(a) * static_cast<D>(b));
  }
};
template <class D>
struct MadWide {
  template <class T>
  D operator()(T a, T b, D c) const {
    return Add{}(MulWide<D>{}(a, b), c);
  }
};
struct Div {
  template <class T>
  T operator()(T a, T b) const {
    if (b == 0) return static_cast<T>(~T{0});
    if (std::is_signed_v<T> && b == static_cast<T>(-1)) return Sub{}(T{0}, a);
    return static_cast<T>(a / b);
  }
};
struct Rem {
  template <class T>
  T operator()(T a, T b) const {
    if (b == 0) return a;
    if (std::is_signed_v<T> && b == static_cast<T>(-1)) return 0;
    return static_cast<T>(a % b);
  }
};
struct Min {
  template <class T>
  T operator()(T a, T b) const {
    return std::min(a, b);
  }
};
struct Max {
  template <class T>
  T operator()(T a, T b) const {
    return std::max(a, b);
  }
};
struct Neg {
  template <class T>
  T operator()(T a) const {
    return Sub{}(T{0}, a);
  }
};
struct Abs {
  template <class T>
  T operator()(T a) const {
    return a < 0 ? Neg{}(a) : a;
  }
};

using Signed = TypeList<std::int16_t, std::int32_t, std::int64_t>;
using Widened = TypeList<std::int16_t, std::uint16_t, std::int32_t, std::uint32_t>;
template <class T>
using TwiceAsWide =
    std::conditional_t<sizeof(T) == 2,
                       std::conditional_t<std::is_signed_v<T>, std::int32_t, std::uint32_t>,
                       std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>>;

Execute mul_wide(const Spelling& spelling, Instruction&) {
  return Widened::pick(spelling.last_type(), []<class T>() -> Execute {
    return run_lanes<MulWide<TwiceAsWide<T>>, TwiceAsWide<T>, T, T>;
  });
}
Execute mad_wide(const Spelling& spelling, Instruction&) {
  return Widened::pick(spelling.last_type(), []<class T>() -> Execute {
    return run_lanes<MadWide<TwiceAsWide<T>>, TwiceAsWide<T>, T, T, TwiceAsWide<T>>;
  });
}

constexpr Form kForms[] = {
    {"add(.s16|.u16|.s32|.u32|.s64|.u64)", "d a b", two_sources<Add, Integers>},
    {"add.sat.s32", "d a b", only<AddSaturated, std::int32_t, std::int32_t, std::int32_t>},
    {"sub(.s16|.u16|.s32|.u32|.s64|.u64)", "d a b", two_sources<Sub, Integers>},
    {"sub.sat.s32", "d a b", only<SubSaturated, std::int32_t, std::int32_t, std::int32_t>},
    {"mul.lo(.s16|.u16|.s32|.u32|.s64|.u64)", "d a b", two_sources<MulLow, Integers>},
    {"mul.hi(.s16|.u16|.s32|.u32|.s64|.u64)", "d a b", two_sources<MulHigh, Integers>},
    {"mul.wide(.s16|.u16|.s32|.u32)", "d:wide a b", mul_wide},
    {"mad.lo(.s16|.u16|.s32|.u32|.s64|.u64)", "d a b c", three_sources<MadLow, Integers>},
    {"mad.hi(.s16|.u16|.s32|.u32|.s64|.u64)", "d a b c", three_sources<MadHigh, Integers>},
    {"mad.wide(.s16|.u16|.s32|.u32)", "d:wide a b c:wide", mad_wide},
    {"div(.s16|.u16|.s32|.u32|.s64|.u64)", "d a b", two_sources<Div, Integers>},
    {"rem(.s16|.u16|.s32|.u32|.s64|.u64)", "d a b", two_sources<Rem, Integers>},
    {"min(.s16|.u16|.s32|.u32|.s64|.u64)", "d a b", two_sources<Min, Integers>},
    {"max(.s16|.u16|.s32|.u32|.s64|.u64)", "d a b", two_sources<Max, Integers>},
    {"neg(.s16|.s32|.s64)", "d a", one_source<Neg, Signed>},
    {"abs(.s16|.s32|.s64)", "d a", one_source<Abs, Signed>},
};

}  // namespace

std::span<const Form> integer_forms() { return kForms; }

}  // namespace attest::ptx
