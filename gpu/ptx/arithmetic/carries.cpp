#include <limits>

#include "gpu/ptx/arithmetic/lanes.hpp"

/// Integer arithmetic of several words: .cc leaves each lane's carry, addc, subc and madc take it.
namespace attest::ptx {
namespace {

template <class T>
using Unsigned = std::make_unsigned_t<T>;
template <class T>
using Exact =
    std::conditional_t<sizeof(T) == 4,
                       std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>,
                       std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>>;

// Terms that are added to the last operand.
struct Plain {
  static constexpr std::size_t kFactors = 1;
  template <class T>
  static Unsigned<T> value(T a, T) {
    return static_cast<Unsigned<T>>(a);
  }
};
struct LowProduct {
  static constexpr std::size_t kFactors = 2;
  template <class T>
  static Unsigned<T> value(T a, T b) {
    return static_cast<Unsigned<T>>(a) * static_cast<Unsigned<T>>(b);
  }
};
struct HighProduct {
  static constexpr std::size_t kFactors = 2;
  template <class T>
  static Unsigned<T> value(T a, T b) {
    return static_cast<Unsigned<T>>((static_cast<Exact<T>>(a) * static_cast<Exact<T>>(b)) >>
                                    8 * sizeof(T));
  }
};

// Bits of the variant.
constexpr std::uint32_t kTakes = 1, kLeaves = 2, kSubtracts = 4;

template <class Term, class T>
void run(Warp& warp, const Instruction& in) {
  using U = Unsigned<T>;
  const Lanes<T>&a = warp.read<T>(in.slots[1]), &b = warp.read<T>(in.slots[Term::kFactors]);
  const Lanes<U>& last = warp.read<U>(in.slots[Term::kFactors + 1]);
  const std::uint32_t before = (in.variant & kTakes) != 0 ? warp.carries() : 0;
  const bool subtracts = (in.variant & kSubtracts) != 0;
  Lanes<U> results;
  std::uint32_t after = 0;
  for (std::size_t lane = 0; lane < kWarpLanes; ++lane) {
    const U x = Term::value(a[lane], b[lane]), y = last[lane];
    const auto carry = static_cast<U>(before >> lane & 1U);
    results[lane] = subtracts ? x - y - carry : x + y + carry;
    const bool is_over = subtracts ? x < y || (carry != 0 && x == y)
                                   : results[lane] < x || (carry != 0 && results[lane] == x);
    after |= std::uint32_t{is_over} << lane;
  }
  if ((in.variant & kLeaves) != 0) warp.write_carries(after);
  warp.write(in.slots[0], results);
}

void note_carries(const Spelling& spelling, Instruction& in) {
  const std::string_view pattern = spelling.form->pattern;
  const std::string_view name = pattern.substr(0, pattern.find_first_of(".[("));
  in.variant = (name.ends_with('c') ? kTakes : 0) | (spelling.has("cc") ? kLeaves : 0) |
               (name.starts_with("sub") ? kSubtracts : 0);
}

using Operands = TypeList<std::int32_t, std::uint32_t, std::int64_t, std::uint64_t>;
template <class Term>
Execute pick(const Spelling& spelling) {
  return Operands::pick(spelling.last_type(), []<class T>() -> Execute { return run<Term, T>; });
}
Execute sum(const Spelling& spelling, Instruction& in) {
  note_carries(spelling, in);
  return pick<Plain>(spelling);
}
Execute product(const Spelling& spelling, Instruction& in) {
  note_carries(spelling, in);
  return spelling.has("hi") ? pick<HighProduct>(spelling) : pick<LowProduct>(spelling);
}

constexpr Form kForms[] = {
    {"add.cc(.u32|.s32|.u64|.s64)", "d a b", sum},
    {"addc[.cc](.u32|.s32|.u64|.s64)", "d a b", sum},
    {"sub.cc(.u32|.s32|.u64|.s64)", "d a b", sum},
    {"subc[.cc](.u32|.s32|.u64|.s64)", "d a b", sum},
    {"mad(.lo|.hi).cc(.u32|.s32|.u64|.s64)", "d a b c", product},
    {"madc(.lo|.hi)[.cc](.u32|.s32|.u64|.s64)", "d a b c", product},
};

}  // namespace

std::span<const Form> carry_forms() { return kForms; }

}  // namespace attest::ptx
